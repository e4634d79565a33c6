import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EventFilter } from '@colonnade/audit-log';
import type { Delivery } from '@colonnade/bus';
import { findNewNumbering, lostOf, planBatch } from './plan.ts';
import { createSeenIds } from './seen-ids.ts';

const event = (id: string) =>
  JSON.stringify({
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    auditID: id,
    stage: 'Panic',
    level: 'None',
  });
const delivery = (seq: number, text = event(`e${seq}`), storedAtNs = BigInt(seq)): Delivery => ({
  seq,
  storedAtNs,
  tries: 1,
  subject: 's',
  payload: Buffer.from(text),
});
const place = { seq: 10, storedAtNs: 10n, head: '', stream: '' };
const json = { format: 'json' } as const;

test('what the file has is skipped, the rest are lines in their order', () => {
  const plan = planBatch(
    [9, 10, 11, 12].map((n) => delivery(n)),
    place,
    json,
  );
  assert.deepEqual(
    plan.entries.map(({ kind, seq, lines }) => [kind, seq, Buffer.concat([...lines]).toString()]),
    [
      ['e', 11, event('e11')],
      ['e', 12, event('e12')],
    ],
  );
  assert.deepEqual(plan.counts, { taken: 2, again: 2, filtered: 0 });
  assert.equal(plan.hole, undefined);
});

test('it stops at a hole', () => {
  const plan = planBatch(
    [11, 14, 15].map((n) => delivery(n)),
    place,
    json,
  );
  assert.deepEqual(plan.hole, { from: 12, to: 13 });
  assert.deepEqual(
    plan.entries.map(({ seq }) => seq),
    [11],
  );
});

test('what is filtered or no event has no line, and its place is dealt with', () => {
  const filter: EventFilter = ({ auditID }) => (auditID === 'e11' ? 'None' : 'RequestResponse');
  const plan = planBatch([delivery(11), delivery(12, 'x'), delivery(13)], place, { ...json, filter });
  assert.deepEqual(
    plan.entries.map(({ kind, seq }) => [kind, seq]),
    [
      ['s', 11],
      ['s', 12],
      ['e', 13],
    ],
  );
  assert.deepEqual(
    plan.poison.map(({ reason }) => reason),
    ['not_json'],
  );
});

test('a list of events is so many lines, and those that are none are set aside one by one', () => {
  const list = `{"apiVersion":"audit.k8s.io/v1","items":[${event('a')},7,${event('b')}],"kind":"EventList"}`;
  const plan = planBatch([delivery(11, list), delivery(12)], place, json);
  assert.deepEqual(
    plan.entries.map(({ kind, seq, lines }) => [
      kind,
      seq,
      lines.map((line) => Buffer.from(line).toString()),
    ]),
    [
      ['e', 11, [event('a'), event('b')]],
      ['e', 12, [event('e12')]],
    ],
  );
  const [poison] = plan.poison;
  assert.deepEqual(
    [poison?.index, poison?.reason, Buffer.from(poison?.delivery.payload ?? '').toString()],
    [1, 'not_an_event', '7'],
  );
  assert.equal(plan.counts.taken, 3);
});

test('what the stream has stored again under another number has no line, and its place is dealt with', () => {
  const seen = createSeenIds();
  const at = (seq: number, msgId: string) => ({ ...delivery(seq), msgId });
  const kinds = (batch: Delivery[], from = 10) =>
    planBatch(batch, { seq: from }, { ...json, seen }).entries.map(({ kind, seq }) => `${kind}${seq}`);
  assert.deepEqual(kinds([at(11, 'a'), at(12, 'b'), at(13, 'a')]), ['e11', 'e12', 's13']);
  assert.deepEqual(kinds([at(14, 'b'), at(15, 'c')], 13), ['s14', 'e15']);
  // A batch that could not be written comes again with its own numbers.
  assert.deepEqual(kinds([at(15, 'c')], 14), ['e15']);
  assert.deepEqual(kinds([delivery(16), delivery(17)], 15), ['e16', 'e17']);
});

test('only so many ids are remembered, the newest', () => {
  const seen = createSeenIds(2);
  const ask = (seq: number, msgId: string) => seen.isRepeated({ seq, msgId });
  assert.deepEqual([ask(1, 'a'), ask(2, 'b'), ask(3, 'c')], [false, false, false]);
  assert.deepEqual([ask(4, 'c'), ask(5, 'b'), ask(6, 'a')], [true, true, false]);
});

test('an old number with a newer time is another message', () => {
  assert.equal(findNewNumbering([delivery(9), delivery(10)], place), undefined);
  assert.equal(findNewNumbering([delivery(9), delivery(3, '', 11n)], place)?.seq, 3);
});

test('what is acknowledged, or before the first of the stream, never comes; the rest of a hole still may', () => {
  const stream = { created: '', firstSeq: 5, lastSeq: 20, messages: 16, bytes: 0, maxBytes: 1 };
  const lost = (ackedSeq: number, firstSeq: number) =>
    lostOf({ from: 11, to: 14 }, { ackedSeq, waiting: 0, stream: { ...stream, firstSeq } });
  assert.equal(lost(10, 5), undefined);
  assert.equal(lost(0, 11), undefined);
  assert.deepEqual(lost(12, 5), { from: 11, to: 12 });
  assert.deepEqual(lost(0, 13), { from: 11, to: 12 });
  assert.deepEqual(lost(19, 5), { from: 11, to: 14 });
});
