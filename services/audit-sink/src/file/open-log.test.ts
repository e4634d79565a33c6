import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { namesOf, verifyLog } from '@colonnade/audit-log';
import type { ConsumerState } from '@colonnade/bus';
import type { AuditEvent } from '@colonnade/contracts';
import { createLogger, createMetrics } from '@colonnade/service-kit';
import { createEvents } from '../events.ts';
import type { Entry } from './chunk.ts';
import { openLog } from './open-log.ts';
import { recover } from './recover.ts';
import { createWriter, type Writer } from './writer.ts';

const folders: string[] = [];
after(async () => {
  for (const dir of folders) await rm(dir, { recursive: true, force: true });
});

const event = (id: string) =>
  `{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"${id}","stage":"Panic","level":"None"}`;
const entry = (seq: number): Entry => ({
  kind: 'e',
  seq,
  storedAtNs: BigInt(seq),
  lines: [Buffer.from(event(`e${seq}`))],
});
const stateOf = (created: string, ackedSeq: number): ConsumerState => ({
  ackedSeq,
  waiting: 0,
  stream: { created, firstSeq: ackedSeq + 1, lastSeq: ackedSeq, messages: 0, bytes: 0, maxBytes: 1 },
});

/** A folder, with a writer that is let go of without a word, as a kill does it. */
async function prepare() {
  const dir = await mkdtemp(path.join(tmpdir(), 'colonnade-open-log-'));
  folders.push(dir);
  const log = path.join(dir, 'audit.log');
  const names = namesOf(log);
  const options = { path: log, names, maxBytes: 1_000_000, sync: false, onRotated: () => {} };
  const logger = createLogger({ service: 'test', level: 'silent' });
  const events = createEvents(logger, createMetrics('test'));
  return {
    log,
    async killedAfter(act: (writer: Writer) => Promise<void>) {
      const { files } = await recover(log, names, { stream: 'one', seq: 0, storedAtNs: 0n });
      const writer = createWriter(files, { ...options, onReplaced: () => {}, describeLoss: async () => [] });
      await act(writer);
      await writer.close();
    },
    /** Opens it as the sink does, and goes on with one record. */
    async goOn(state: ConsumerState) {
      const writer = await openLog({ ...options, format: 'json' }, state, events);
      await writer.append([entry(writer.place().seq + 1)]);
      await writer.close();
      const last = (await readFile(log, 'utf8')).trimEnd().split('\n');
      const gaps = last.map((line) => JSON.parse(line) as AuditEvent).filter(({ verb }) => verb === 'gap');
      return gaps.map(({ responseStatus, objectRef }) => [responseStatus?.reason, objectRef?.name]);
    },
  };
}

const started = (seq: number, stream: string) => ({ stream, seq, storedAtNs: 99n });

test('killed after a new numbering began and before that was said, it is said at the next start', async () => {
  for (const [begun, state, said] of [
    [started(2, 'one'), stateOf('one', 2), ['stream_went_back', '3-5']],
    [started(2, 'two'), stateOf('two', 2), ['stream_recreated', '5-2']],
  ] as const) {
    const { log, killedAfter, goOn } = await prepare();
    await killedAfter(async (writer) => {
      await writer.append([1, 2, 3, 4, 5].map(entry));
      await writer.startOver(begun);
    });
    assert.equal((await verifyLog(log, [])).fault, undefined);
    assert.deepEqual(await goOn(state), [said]);
    assert.equal((await verifyLog(log, [])).fault, undefined);
    // Once: what is said is not said again.
    assert.equal((await goOn(state)).length, 1);
    assert.equal((await verifyLog(log, [])).fault, undefined);
  }
});

test('also when the log is moved away meanwhile', async () => {
  const { log, killedAfter, goOn } = await prepare();
  await killedAfter(async (writer) => {
    await writer.append([1, 2, 3].map(entry));
    await writer.startOver(started(0, 'one'));
  });
  await rm(log);
  assert.deepEqual(await goOn(stateOf('one', 0)), [['stream_went_back', '1-3']]);
  assert.equal((await verifyLog(log, [])).fault, undefined);
});

test('killed before the first file says what it does not have, it is said at the next start', async () => {
  const { goOn, log } = await prepare();
  const names = namesOf(log);
  const { files } = await recover(log, names, started(7, 'one'));
  await files.log.close();
  await files.journal.close();
  assert.deepEqual(await goOn(stateOf('one', 7)), [['before_this_file', '1-7']]);
  assert.equal((await goOn(stateOf('one', 7))).length, 1);
});

test('a new file that goes on with the numbers has nothing to say', async () => {
  const { killedAfter, goOn } = await prepare();
  await killedAfter(async (writer) => {
    await writer.append([1, 2, 3].map(entry));
    await writer.startOver(started(3, 'one'));
  });
  assert.deepEqual(await goOn(stateOf('one', 3)), []);
});

test('numbers that change without a word are found, also over a file that has no record', async () => {
  for (const moved of [false, true]) {
    const { log, killedAfter } = await prepare();
    await killedAfter(async (writer) => {
      await writer.append([1, 2, 3].map(entry));
      await writer.startOver(started(0, 'one'));
    });
    if (moved) await rm(log);
    await killedAfter((writer) => writer.append([entry(1)]));
    assert.equal((await verifyLog(log, [])).fault?.what, 'numbering_changed');
  }
});
