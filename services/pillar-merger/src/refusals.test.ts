import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AuditOutcome, AuditRequest } from '@colonnade/audit';
import type { Refusal } from './bridge/handle-entry.ts';
import { createRefusals } from './refusals.ts';

const refusal = (master = 'm1'): Refusal => ({
  code: 'forbidden',
  reason: 'the pillarenv is not meant for this minion',
  master,
  minionId: 'web-1',
  pillarenv: 'task:1',
});

/** Keeps what is recorded; fails while `away`. */
function createRecorder() {
  const records: (AuditRequest & AuditOutcome)[] = [];
  const state = { away: false };
  const begin = (request: AuditRequest) => {
    const complete = async (outcome: AuditOutcome) => {
      if (state.away) throw new Error('away');
      records.push({ ...request, ...outcome });
    };
    const [completeBatched, completeUntilStored] = [complete, complete];
    return { auditID: 'x', received: async () => {}, complete, completeBatched, completeUntilStored };
  };
  return { records, state, auditor: { begin } };
}

const suppressed = (record: AuditOutcome | undefined) => record?.annotations?.['colonnade/not-recorded'];

test('refusals are recorded up to a rate for each master; the others are counted on a later record', async () => {
  const { records, auditor } = createRecorder();
  const refusals = createRefusals({ auditor, burst: 3, perSecond: 0, onFault: () => assert.fail() });
  for (let i = 0; i < 10; i++) await refusals.record(refusal());
  await refusals.record(refusal('m2'));
  assert.deepEqual(
    records.map(({ user }) => user.username),
    ['master:m1', 'master:m1', 'master:m1', 'master:m2'],
  );
  await refusals[Symbol.asyncDispose]();
  assert.equal(records.length, 5);
  assert.equal(suppressed(records[4]), '7');
});

test('what was only counted is told by minion and pillarenv, each once and up to a bound', async () => {
  const { records, auditor } = createRecorder();
  const refusals = createRefusals({ auditor, burst: 1, perSecond: 0, onFault: () => assert.fail() });
  await refusals.record(refusal());
  for (const minionId of ['a', 'b', 'a', 'b']) await refusals.record({ ...refusal(), minionId });
  for (let i = 0; i < 100; i++) await refusals.record({ ...refusal(), pillarenv: `task:${i}` });
  await refusals[Symbol.asyncDispose]();
  assert.equal(suppressed(records[1]), '104');
  const told = records[1]?.annotations?.['colonnade/not-recorded-first']?.split('\n');
  assert.deepEqual(told?.slice(0, 3), ['a task:1', 'b task:1', 'web-1 task:0']);
  assert.equal(told?.length, 32);
});

test('a refusal that cannot be recorded is thrown, and no count is lost', async () => {
  const { records, state, auditor } = createRecorder();
  const faults: unknown[] = [];
  const refusals = createRefusals({
    auditor,
    burst: 2,
    perSecond: 0,
    onFault: (thrown) => faults.push(thrown),
  });
  state.away = true;
  await assert.rejects(refusals.record(refusal()), /away/u);
  await assert.rejects(refusals.record(refusal()), /away/u);
  await refusals.record(refusal());
  await refusals[Symbol.asyncDispose]();
  assert.equal(faults.length, 1);
  assert.equal(records.length, 0);
});
