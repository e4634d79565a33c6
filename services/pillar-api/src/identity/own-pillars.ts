import {
  type Call,
  ColonnadeError,
  LIMITS,
  type OpenContext,
  type ownScopes,
  type Workload,
  type zOwnPillars,
} from '@colonnade/contracts';
import type { PillarRecord } from '@colonnade/estate-store';
import { canonicalBytes, type Value } from '@colonnade/value';
import type { z } from 'zod';
import type { Estate } from '../estate.ts';
import type { Kms } from '../kms.ts';
import { toWire } from '../kms-check.ts';

type Scope = ReturnType<typeof ownScopes>[number];

/**
 * The pillars a workload may have, secrets opened: of one moment, whole or not at all. crypto-kms opens them under the
 * workload's own token and looks at signature, state and scope itself.
 * @throws ColonnadeError `unauthorized` (the task ended meanwhile) | `too_large` | of crypto-kms
 */
export async function readOwnPillars(
  deps: { estate: Pick<Estate, 'store'>; kms: Pick<Kms, 'openForWorkload'> },
  workload: Workload,
  token: string,
  scopes: readonly Scope[],
  call: Call,
): Promise<z.output<typeof zOwnPillars>> {
  const pillarenvs = scopes.map(({ pillarenv }) => pillarenv);
  const snapshot = await deps.estate.store.snapshot({
    ...{ since: undefined, scopes: pillarenvs, collections: false, masters: [], minions: [] },
    ...(workload.kind === 'task' ? { tasks: [workload.task] } : {}),
  });
  // A pillarenv can hold records of another target of the same name, from before ids were bounded.
  const rows = scopes.flatMap(({ tgtType, tgtId, pillarenv }) =>
    (snapshot.scopes.get(pillarenv) ?? []).filter((one) => one.tgtType === tgtType && one.tgtId === tgtId),
  );
  checkSize(rows);
  const opened = await openAll(
    deps.kms,
    token,
    rows.filter(({ isSecret }) => isSecret),
    call,
  );
  const items = rows.map((row) => ({
    ...{ name: row.name, tgt_type: row.tgtType, is_secret: row.isSecret },
    value: row.isSecret ? openedOf(opened, row) : row.value,
  }));
  return { items, clock: snapshot.clock.tick };
}

function checkSize(rows: readonly PillarRecord[]): void {
  const bytes = rows.reduce((sum, { value }) => sum + canonicalBytes(value).length, 0);
  if (bytes <= LIMITS.ownPillarsBytes) return;
  throw new ColonnadeError('too_large', `the pillars are over ${LIMITS.ownPillarsBytes} bytes together`);
}

function openedOf(opened: ReadonlyMap<PillarRecord, Value>, row: PillarRecord): Value {
  const value = opened.get(row);
  // Cannot be: every secret was opened, or an error thrown.
  if (value === undefined) throw new ColonnadeError('internal', 'a secret was not opened');
  return value;
}

async function openAll(
  kms: Pick<Kms, 'openForWorkload'>,
  token: string,
  rows: readonly PillarRecord[],
  call: Call,
): Promise<ReadonlyMap<PillarRecord, Value>> {
  const opened = new Map<PillarRecord, Value>();
  for (const batch of batchesOf(rows)) {
    const items = batch.map((row): { context: OpenContext; enc: Value } => ({
      context: toWire(row),
      enc: row.value,
    }));
    const answer = await kms.openForWorkload({ token, items }, call);
    for (const [at, row] of batch.entries()) {
      const item = answer.items[at];
      if (item === undefined)
        throw new ColonnadeError('internal', 'the key service answered with too few items');
      if (!item.ok) throw new ColonnadeError(item.error.code, item.error.message);
      opened.set(row, item.result);
    }
  }
  return opened;
}

/** As many as one request may hold, by count and by bytes: answers are smaller than what is sealed. */
function batchesOf(rows: readonly PillarRecord[]): PillarRecord[][] {
  const batches: PillarRecord[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const row of rows) {
    const size = canonicalBytes(row.value).length;
    if (bytes + size > LIMITS.kmsBatchBytes / 2 || (batches.at(-1)?.length ?? 0) >= LIMITS.kmsBatchItems) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1)?.push(row);
    bytes += size;
  }
  return batches;
}
