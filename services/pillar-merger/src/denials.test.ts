import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AuditOutcome, AuditRequest } from '@colonnade/audit';
import type { Denial } from './bridge/handle-entry.ts';
import { createDenials } from './denials.ts';

const denial = (master = 'm1'): Denial => ({
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
  const begin = (request: AuditRequest) => ({
    auditID: 'x',
    received: async () => {},
    complete: async (outcome: AuditOutcome) => {
      if (state.away) throw new Error('away');
      records.push({ ...request, ...outcome });
    },
  });
  return { records, state, auditor: { begin } };
}

const suppressed = (record: AuditOutcome | undefined) => record?.annotations?.['colonnade/not-recorded'];

test('refusals are recorded up to a rate for each master; the others are counted on a later record', async () => {
  const { records, auditor } = createRecorder();
  const denials = createDenials({ auditor, burst: 3, perSecond: 0, onFault: () => assert.fail() });
  for (let i = 0; i < 10; i++) await denials.record(denial());
  await denials.record(denial('m2'));
  assert.deepEqual(
    records.map(({ user }) => user.username),
    ['master:m1', 'master:m1', 'master:m1', 'master:m2'],
  );
  await denials[Symbol.asyncDispose]();
  assert.equal(records.length, 5);
  assert.equal(suppressed(records[4]), '7');
});

test('what was only counted is told by minion and pillarenv, each once and up to a bound', async () => {
  const { records, auditor } = createRecorder();
  const denials = createDenials({ auditor, burst: 1, perSecond: 0, onFault: () => assert.fail() });
  await denials.record(denial());
  for (const minionId of ['a', 'b', 'a', 'b']) await denials.record({ ...denial(), minionId });
  for (let i = 0; i < 100; i++) await denials.record({ ...denial(), pillarenv: `task:${i}` });
  await denials[Symbol.asyncDispose]();
  assert.equal(suppressed(records[1]), '104');
  const told = records[1]?.annotations?.['colonnade/not-recorded-first']?.split('\n');
  assert.deepEqual(told?.slice(0, 3), ['a task:1', 'b task:1', 'web-1 task:0']);
  assert.equal(told?.length, 32);
});

test('a refusal that cannot be recorded is thrown, and no count is lost', async () => {
  const { records, state, auditor } = createRecorder();
  const faults: unknown[] = [];
  const denials = createDenials({
    auditor,
    burst: 2,
    perSecond: 0,
    onFault: (thrown) => faults.push(thrown),
  });
  state.away = true;
  await assert.rejects(denials.record(denial()), /away/u);
  await assert.rejects(denials.record(denial()), /away/u);
  await denials.record(denial());
  await denials[Symbol.asyncDispose]();
  assert.equal(faults.length, 1);
  assert.equal(records.length, 0);
});
