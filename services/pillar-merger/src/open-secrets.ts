import {
  type Call,
  ColonnadeError,
  decodeTree,
  type Enc,
  type ErrorCode,
  kmsOpenForMerger,
  LIMITS,
  toColonnadeError,
  zEnc,
} from '@colonnade/contracts';
import type { PillarRecord } from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import type { z } from 'zod';
import type { Merged } from './merge.ts';

type OpenRequest = z.output<typeof kmsOpenForMerger.request>;
type OpenItem = OpenRequest['items'][number];
/** Asks crypto-kms to open one batch. */
export type AskKms = (request: OpenRequest, call: Call) => Promise<z.output<typeof kmsOpenForMerger.response>>;

/** Who a merge is for; the KMS checks the token itself. */
export type OpenFor = { token: string; master: string; minionId: string };

/** Room for the token and the frame of a request. */
const FRAME_BYTES = 16 * 1024;

/**
 * Opens the secrets among the winners, and no others: what was overridden stays sealed.
 * @returns by record; empty, without asking anyone, when there is no secret
 * @throws ColonnadeError `kms_unavailable` or `kms_refused`: one value that cannot be opened fails the whole merge
 */
export async function openSecrets(
  merged: Merged,
  who: OpenFor,
  ask: AskKms,
  call: Call,
): Promise<ReadonlyMap<PillarRecord, Value>> {
  const sealed = [...merged.values()].map(({ winner }) => winner).filter((winner) => winner.isSecret);
  const opened = new Map<PillarRecord, Value>();
  const batches = splitBatches(sealed.map((record) => ({ record, item: itemOf(record) })));
  await Promise.all(
    batches.map(async (batch) => {
      const values = await openBatch(batch.map(({ item }) => item), who, ask, call);
      batch.forEach(({ record }, i) => void opened.set(record, values[i] as Value));
    }),
  );
  return opened;
}

async function openBatch(
  items: readonly OpenItem[],
  who: OpenFor,
  ask: AskKms,
  call: Call,
): Promise<readonly Value[]> {
  const request = { token: who.token, master: who.master, minion_id: who.minionId, items: [...items] };
  const answer = await ask(request, call).catch((thrown) => {
    throw kmsError(toColonnadeError(thrown));
  });
  if (answer.items.length !== items.length) {
    throw new ColonnadeError('kms_refused', 'the KMS answered another number of items than it was asked for');
  }
  return answer.items.map((item) => {
    if (item.ok) return item.result;
    throw kmsError(new ColonnadeError(item.error.code as ErrorCode, item.error.message));
  });
}

const UNAVAILABLE: ReadonlySet<ErrorCode> = new Set([
  'bus_unavailable',
  'unavailable',
  'kms_unavailable',
  'overloaded',
  'rate_limited',
  'expired',
]);

/** Total: what may pass by itself is `kms_unavailable`, everything else `kms_refused`. The code of the KMS stays in the message. */
export function kmsError(error: ColonnadeError): ColonnadeError {
  const code = UNAVAILABLE.has(error.code) ? 'kms_unavailable' : 'kms_refused';
  return new ColonnadeError(code, `crypto-kms does not open the secrets: ${error.code}`, { cause: error });
}

/** Sealed values do not change, so that each is decoded once. */
const decoded = new WeakMap<PillarRecord, Enc>();

function itemOf(record: PillarRecord): OpenItem {
  const { tgtType, tgtId, pillarenv, name } = record;
  return { context: { tgt_type: tgtType, tgt_id: tgtId, pillarenv, name }, enc: encOf(record) };
}

function encOf(record: PillarRecord): Enc {
  const known = decoded.get(record);
  if (known !== undefined) return known;
  try {
    const enc = decodeTree(zEnc, record.value);
    decoded.set(record, enc);
    return enc;
  } catch (thrown) {
    throw new ColonnadeError('kms_refused', 'a secret is not stored in its sealed form', { cause: thrown });
  }
}

/** Splits by both limits of a batch; an opened value is shorter than its sealed form, so the answers fit as well. */
export function splitBatches<T extends { item: OpenItem }>(entries: readonly T[]): readonly T[][] {
  const batches: T[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const entry of entries) {
    const size = itemBytes(entry.item);
    const last = batches.at(-1);
    if (last === undefined || last.length >= LIMITS.kmsBatchItems || bytes + size > LIMITS.kmsBatchBytes) {
      batches.push([entry]);
      bytes = FRAME_BYTES + size;
    } else {
      last.push(entry);
      bytes += size;
    }
  }
  return batches;
}

/** An upper bound: a byte of a text takes at most six as JSON. */
function itemBytes({ context, enc }: OpenItem): number {
  const texts = context.tgt_id.length + context.pillarenv.length + context.name.length + enc.$enc.kid.length;
  return enc.$enc.ct_b64.length + 6 * 3 * texts + 1024;
}
