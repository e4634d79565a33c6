import {
  type Call,
  ColonnadeError,
  type ErrorCode,
  hasEncMarker,
  type kmsOpenForMerger,
  LIMITS,
  toColonnadeError,
} from '@colonnade/contracts';
import type { PillarRecord } from '@colonnade/estate-store';
import { canonicalBytes, type Value } from '@colonnade/value';
import type { z } from 'zod';
import type { Merged } from './merge.ts';

type OpenRequest = z.output<typeof kmsOpenForMerger.request>;
type OpenItem = OpenRequest['items'][number];
/** Asks crypto-kms to open one batch. */
export type AskKms = (
  request: OpenRequest,
  call: Call,
) => Promise<z.output<typeof kmsOpenForMerger.response>>;

/** Who a merge is for; the KMS checks the token itself. */
export type OpenFor = { token: string; master: string; minionId: string };

/** Room for the token and the frame of a request. */
const FRAME_BYTES = 16 * 1024;

/** The secrets among the winners, and no others: what was overridden stays sealed. */
export function secretsOf(merged: Merged): readonly PillarRecord[] {
  return [...merged.values()].map(({ winner }) => winner).filter((winner) => winner.isSecret);
}

/**
 * Opens secrets.
 * @returns by record; empty, without asking anyone, when there is none
 * @throws ColonnadeError `kms_unavailable` or `kms_refused`: one value that cannot be opened fails the whole merge
 */
export async function openSecrets(
  secrets: readonly PillarRecord[],
  who: OpenFor,
  ask: AskKms,
  call: Call,
): Promise<ReadonlyMap<PillarRecord, Value>> {
  const opened = new Map<PillarRecord, Value>();
  const batches = splitBatches(secrets.map((record) => ({ record, item: itemOf(record) })));
  await Promise.all(
    batches.map(async (batch) => {
      const values = await openBatch(
        batch.map(({ item }) => item),
        who,
        ask,
        call,
      );
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
function kmsError(error: ColonnadeError): ColonnadeError {
  const code = UNAVAILABLE.has(error.code) ? 'kms_unavailable' : 'kms_refused';
  return new ColonnadeError(code, `crypto-kms does not open the secrets: ${error.code}`, { cause: error });
}

/** Stored records do not change, so each is one item, which the bus writes out once. */
const known = new WeakMap<PillarRecord, OpenItem>();

function itemOf(record: PillarRecord): OpenItem {
  const item = known.get(record) ?? makeItem(record);
  known.set(record, item);
  return item;
}

function makeItem(record: PillarRecord): OpenItem {
  if (!hasEncMarker(record.value)) {
    throw new ColonnadeError('kms_refused', 'a secret is not stored in its sealed form');
  }
  const { tgtType, tgtId, pillarenv, name } = record;
  return { context: { tgt_type: tgtType, tgt_id: tgtId, pillarenv, name }, enc: record.value };
}

/** Splits by both limits of a batch; an opened value is shorter than its sealed form, so the answers fit as well. */
function splitBatches<T extends { item: OpenItem }>(entries: readonly T[]): readonly T[][] {
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

function itemBytes({ context, enc }: OpenItem): number {
  const texts = context.tgt_id.length + context.pillarenv.length + context.name.length;
  return encBytes(enc) + MAX_JSON_BYTES_PER_UNIT * texts + ITEM_FRAME_BYTES;
}

const MAX_JSON_BYTES_PER_UNIT = 6;
const ITEM_FRAME_BYTES = 256;

/** Stored records do not change, so that each sealed form is measured once. */
const measured = new WeakMap<object, number>();

function encBytes(enc: Value): number {
  if (typeof enc !== 'object' || enc === null) return 0;
  const bytes = measured.get(enc) ?? canonicalBytes(enc).length;
  measured.set(enc, bytes);
  return bytes;
}
