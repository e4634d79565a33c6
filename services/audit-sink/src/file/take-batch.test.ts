import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { namesOf } from '@colonnade/audit-log';
import type { ConsumerState, Delivery } from '@colonnade/bus';
import type { AuditEvent } from '@colonnade/contracts';
import { createLogger, createMetrics } from '@colonnade/service-kit';
import { createEvents } from '../events.ts';
import { createPersister } from './persister.ts';
import { recover } from './recover.ts';
import { createBatchTaker } from './take-batch.ts';
import { createWriter } from './writer.ts';

const folders: string[] = [];
after(async () => {
  for (const dir of folders) await rm(dir, { recursive: true, force: true });
});

const delivery = (seq: number, storedAtNs = seq): Delivery => ({
  seq,
  storedAtNs: BigInt(storedAtNs),
  tries: 1,
  subject: 's',
  payload: Buffer.from(
    `{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"e${seq}","stage":"Panic","level":"None"}`,
  ),
});
const batch = (...seqs: number[]) => seqs.map((seq) => delivery(seq));

/** A file that has 1 to 20 of a stream where 21 to 25 are gone. */
async function prepare(acceptGapTo: number, state: Partial<ConsumerState> = {}) {
  const dir = await mkdtemp(path.join(tmpdir(), 'colonnade-take-batch-'));
  folders.push(dir);
  const log = path.join(dir, 'audit.log');
  const names = namesOf(log);
  const { files } = await recover(log, names, { stream: 'made', seq: 20, storedAtNs: 20n });
  const writer = createWriter(files, {
    ...{ path: log, names, maxBytes: 1_000_000, sync: false },
    ...{ onRotated: () => {}, onReplaced: () => {}, describeLoss: async () => [] },
  });
  const events = createEvents(createLogger({ service: 'test', level: 'silent' }), createMetrics('test'));
  const persister = createPersister(events, () => {});
  const stream = { created: 'made', firstSeq: 26, lastSeq: 40, messages: 15, bytes: 0, maxBytes: 1 };
  const bus = { consumerState: async () => ({ ackedSeq: 25, waiting: 15, stream, ...state }) };
  const take = createBatchTaker(
    { format: 'json', acceptGapTo },
    { bus, names, persister, events, bury: async () => {} },
  );
  return {
    persister,
    take: async (...seqs: number[]) => {
      const verdicts = await take(writer, batch(...seqs), new AbortController().signal);
      return verdicts.map(({ kind }) => kind);
    },
    /** Messages with the time of each. */
    takeAt: async (...times: [seq: number, storedAtNs: number][]) => {
      const deliveries = times.map(([seq, time]) => delivery(seq, time));
      return (await take(writer, deliveries, new AbortController().signal)).map(({ kind }) => kind);
    },
    written: () => idsIn(log),
    /** In the file that was rotated last. */
    writtenBefore: async () => idsIn((await names.list()).at(-1)?.log ?? ''),
  };
}

async function idsIn(log: string): Promise<string[]> {
  const lines = (await readFile(log, 'utf8')).split('\n').slice(0, -1);
  return lines
    .map((line) => JSON.parse(line) as AuditEvent)
    .map(({ auditID, verb, objectRef }) => (verb === 'gap' ? `gap ${objectRef?.name}` : auditID));
}

test('messages that come again in another order make no hole larger than it is', async () => {
  const { take, persister, written } = await prepare(0);
  for (const seqs of [[26, 27, 28], [28], [30, 31]]) {
    assert.ok((await take(...seqs)).every((kind) => kind === 'later'));
    assert.throws(persister.check, /^Error: records 21 to 25 are gone from the stream$/u);
  }
  assert.deepEqual(await written(), []);
});

test('accepting a hole up to more than it is loses nothing of what comes again later', async () => {
  const { take, persister, written } = await prepare(40);
  await take(30, 31);
  await take(26, 27);
  await take(28, 29, 30, 31);
  persister.check();
  assert.deepEqual(await written(), ['gap 21-25', 'e26', 'e27', 'e28', 'e29', 'e30', 'e31']);
});

test('what may still come is waited for', async () => {
  const { take, persister, written } = await prepare(40, {
    ackedSeq: 20,
    stream: { created: 'made', firstSeq: 21, lastSeq: 40, messages: 20, bytes: 0, maxBytes: 1 },
  });
  assert.deepEqual(await take(23), ['later']);
  persister.check();
  assert.deepEqual(await take(21, 22, 23), ['done', 'done', 'done']);
  assert.deepEqual(await written(), ['e21', 'e22', 'e23']);
});

test('a clock that was set back makes no old message a new one', async () => {
  const { takeAt, written } = await prepare(0);
  assert.deepEqual(await takeAt([21, 5000], [22, 5001], [23, 70]), ['done', 'done', 'done']);
  // Their acknowledgement was lost: they come again, and are older than the last only by their number.
  assert.deepEqual(await takeAt([21, 5000], [22, 5001], [23, 70], [24, 71]), [
    'done',
    'done',
    'done',
    'done',
  ]);
  assert.deepEqual(await written(), ['e21', 'e22', 'e23', 'e24']);
});

test('nor a new one an old one: a stream that lost its end is told by the times of its numbers', async () => {
  const { takeAt, written, writtenBefore } = await prepare(0);
  await takeAt([21, 5000], [22, 5001], [23, 5002]);
  assert.deepEqual(await takeAt([22, 900], [23, 901]), ['done', 'done']);
  assert.deepEqual(await writtenBefore(), ['e21', 'e22', 'e23']);
  assert.deepEqual(await written(), ['gap 22-23', 'e22', 'e23']);
  // Of the number that was given twice the second time counts.
  assert.deepEqual(await takeAt([22, 900], [23, 901], [24, 902]), ['done', 'done', 'done']);
  assert.deepEqual(await written(), ['gap 22-23', 'e22', 'e23', 'e24']);
});
