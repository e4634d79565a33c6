import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import type { Connection } from './connection.ts';
import { SCHEMA_VERSION } from './schema.ts';
import { createSnapshotReader } from './snapshot.ts';
import { createWriteQueue } from './write-queue.ts';

/**
 * A primary that was replaced and does not know it yet, which one server alone cannot be: its transactions see older
 * clocks, while the linearizable read goes to the majority.
 */
function staleConnection({
  newest,
  inTransactions,
}: {
  newest: number;
  inTransactions: number[];
}): Connection {
  const clockAt = (tick: number) => ({
    ...{ _id: 'clock', schema_version: SCHEMA_VERSION, incarnation: 'one', tick, changes_floor: 0 },
  });
  const session = {
    id: { id: { buffer: new Uint8Array(16) } },
    startTransaction: () => {},
    inTransaction: () => false,
    commitTransaction: async () => {},
    endSession: async () => {},
  };
  const next = () => (inTransactions.length > 1 ? inTransactions.shift() : inTransactions[0]) as number;
  const done = async () => ({ matchedCount: 1 });
  return {
    client: { startSession: () => session },
    limit: { maxTimeMS: 1000 },
    use: (run: () => Promise<unknown>) => run(),
    tables: {
      meta: {
        findOne: async (_: object, options: object) => clockAt('session' in options ? next() : newest),
        updateOne: done,
      },
      writers: { updateOne: done, deleteOne: done },
      masters: { find: () => ({ toArray: async () => [] }) },
    },
  } as unknown as Connection;
}

const OPTIONS = { changeTicksKept: 10, writeTimeoutMs: 200 };

const refuseAt = (tick: number) => async (group: { clock: { tick: number } }) => {
  if (group.clock.tick === tick) throw new ColonnadeError('precondition_failed', 'as of an older state');
  return group.clock.tick;
};

test('a refusal decided on an older state does not count: the job is run again', async () => {
  const queue = createWriteQueue(staleConnection({ newest: 2, inTransactions: [1, 1, 2] }), OPTIONS);
  assert.equal(await queue.run(refuseAt(1)), 2);
});

test('a refusal decided on the newest state counts at once', async () => {
  const queue = createWriteQueue(staleConnection({ newest: 2, inTransactions: [2, 3] }), OPTIONS);
  await assert.rejects(queue.run(refuseAt(2)), { code: 'precondition_failed' });
});

test('where only older states are to be had, neither refusals nor snapshots are given', async () => {
  const connection = staleConnection({ newest: 2, inTransactions: [1] });
  const queue = createWriteQueue(connection, OPTIONS);
  await assert.rejects(queue.run(refuseAt(1)), { code: 'unavailable' });
  const query = { since: undefined, scopes: [], collections: false, masters: ['m1'], minions: [] };
  await assert.rejects(createSnapshotReader(connection, 200)(query), { code: 'unavailable' });
});

test('a snapshot is read again until it is as new as the clock that was read first', async () => {
  const connection = staleConnection({ newest: 5, inTransactions: [3, 4, 6] });
  const query = { since: undefined, scopes: [], collections: false, masters: ['m1'], minions: [] };
  assert.equal((await createSnapshotReader(connection, 1000)(query)).clock.tick, 6);
});
