import assert from 'node:assert/strict';
import { open, readdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { namesOf, parseHeader, parseRecord, verifyLog } from '@colonnade/audit-log';
import { createLogger, createMetrics } from '@colonnade/service-kit';
import type { Behaviour } from '../../../test/support/fake-webhook.ts';
import { skipWithoutMount, smallDisk } from '../../../test/support/small-disk.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { createFileBackend } from '../src/backends/file.ts';
import { startBackends } from '../src/backends/union.ts';
import { createEvents } from '../src/events.ts';
import { type FlowSink, startFlow, startFlowSink } from './flow.ts';
import { prepareSink, publishMany, readIds } from './support.ts';

describe('while records flow', () => {
  let sink: FlowSink;
  before(async () => {
    sink = await startFlowSink();
  });
  after(() => sink?.[Symbol.asyncDispose]());

  /** Logs that somebody took away, by their inode: the file, or what was in it. */
  const taken = new Map<string, string | Buffer>();
  const kept = new AsyncDisposableStack();
  after(() => kept.disposeAsync());
  /** To the name its journal has been given meanwhile; what no journal vouches for stands in the next file. */
  const putBack = async () => {
    const names = namesOf(sink.logPath);
    for (const { stamp, log, gz, journal } of await names.list()) {
      if (journal === undefined || log !== undefined || gz !== undefined) continue;
      const [header = '', ...records] = (await readFile(journal, 'utf8')).trimEnd().split('\n');
      const { inode } = parseHeader(header);
      const what = taken.get(inode);
      if (what === undefined) continue;
      const bytes = typeof what === 'string' ? await readFile(what) : what;
      const end = parseRecord(records.at(-1) ?? '')?.end ?? 0;
      await writeFile(names.rotatedAt(stamp), bytes.subarray(0, end));
    }
  };

  test('SIGHUP, again and again', async () => {
    await using flow = startFlow(sink, 'hangup');
    for (let i = 0; i < 40; i += 1) {
      await flow.more(10);
      await sink.service.kill('SIGHUP');
    }
    await sink.expectAll(await flow.stop());
  });

  test('the log is moved away, with SIGHUP and without', async () => {
    await using flow = startFlow(sink, 'moved');
    for (let i = 0; i < 20; i += 1) {
      await flow.more(20);
      const elsewhere = path.join(sink.dir, `moved-${i}`);
      // Just then it may be rotated, and not be there.
      await rename(sink.logPath, elsewhere).catch(() => {});
      const moved = await stat(elsewhere, { bigint: true }).catch(() => undefined);
      if (moved !== undefined) taken.set(`${moved.dev}:${moved.ino}`, elsewhere);
      if (i % 2 === 0) await sink.service.kill('SIGHUP');
    }
    assert.ok(taken.size >= 10);
    await sink.expectAll(await flow.stop(), putBack);
  });

  test('the log is deleted', async () => {
    await using flow = startFlow(sink, 'deleted');
    const before = taken.size;
    for (let i = 0; i < 20; i += 1) {
      await flow.more(20);
      const handle = await open(sink.logPath).catch(() => undefined);
      if (handle === undefined) continue;
      // Open until the end, so that no other file gets its inode.
      kept.use(handle);
      const { ino, dev } = await handle.stat({ bigint: true });
      await rm(sink.logPath, { force: true });
      taken.set(`${dev}:${ino}`, await handle.readFile());
    }
    assert.ok(taken.size >= before + 10);
    await sink.expectAll(await flow.stop(), putBack);
  });

  const misbehaviours: Record<string, Behaviour> = {
    'answers 500': (_ids, response) => void response.writeHead(500).end(),
    'answers 429': (_ids, response) => void response.writeHead(429, { 'retry-after': '0' }).end(),
    'answers 400 to whole lists': (ids, response) => {
      if (ids.length > 1) response.writeHead(400).end();
    },
    'sends half an answer': (_ids, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{"half"');
      setImmediate(() => response.destroy());
    },
    'is slow': async () => new Promise((resolve) => setTimeout(resolve, 300)),
  };
  test('the webhook is down, slow, and answers 500, 429, 400 and half a response', async () => {
    await using flow = startFlow(sink, 'webhook');
    for (const behave of Object.values(misbehaviours)) {
      const lists = sink.webhook.lists.length;
      sink.webhook.behave(behave);
      await waitFor('it to be asked', () => sink.webhook.lists.length >= lists + 2, { limitMs: 30_000 });
      sink.webhook.behave(undefined);
      await flow.more(20);
    }
    await sink.webhook.stop();
    const inFile = (await readIds(sink.logPath)).length;
    await waitFor('the file to go on', async () => (await readIds(sink.logPath)).length > inFile + 50);
    await sink.webhook.start();
    await sink.expectAll(await flow.stop(), putBack);
  });
});

test('while records flow, the disk is full for a while', { skip: skipWithoutMount() }, async () => {
  // More than the flow brings while it waits for a slow machine: full it is by the filler alone.
  await using disk = await smallDisk(192);
  const filler = path.join(disk.path, 'filler');
  await writeFile(filler, Buffer.alloc(186 * 1024 * 1024));
  await using sink = await startFlowSink({
    AUDIT_LOG_PATH: path.join(disk.path, 'audit', 'audit.log'),
    AUDIT_LOG_COMPRESS: 'false',
  });
  await using flow = startFlow(sink, 'full', 4);
  const status = async () => (await fetch(`${sink.service.url}/readyz`)).status;
  for (let i = 0; i < 2; i += 1) {
    await waitFor('a full disk', async () => (await status()) === 503, { limitMs: 60_000 });
    assert.match(await (await fetch(`${sink.service.url}/readyz`)).text(), /ENOSPC/u);
    // The API goes on meanwhile.
    await flow.more(50);
    await rm(filler);
    await waitFor('ready', async () => (await status()) === 200, { limitMs: 30_000 });
    if (i === 0) await fillUp(filler, disk.path);
  }
  await sink.expectAll(await flow.stop());
});

/** Leaves less room than is needed soon; the log may have taken it meanwhile. */
async function fillUp(filler: string, dir: string): Promise<void> {
  const { bavail, bsize } = await statfs(dir);
  await writeFile(filler, Buffer.alloc(Math.max(0, bavail * bsize - 1024 * 1024))).catch(() => {});
}

test('while records flow, it is rotated every few milliseconds', { timeout: 120_000 }, async () => {
  await using sink = await prepareSink({ maxAuditBytes: 64 * 1024 * 1024, maxFileBytes: 256 * 1024 * 1024 });
  const bus = await sink.bus.as('audit-sink');
  const events = createEvents(createLogger({ service: 'audit-sink', level: 'silent' }), createMetrics('t'));
  // Each event fills a file; the setting of the service is in megabytes.
  const file = createFileBackend(
    {
      ...{ path: sink.logPath, format: 'json', maxBytes: 4 * 1024, fsync: 'batch', acceptGapTo: 0 },
      ...{ anchorMs: 200, keep: { maxBackups: 0, maxAgeDays: 0, compress: true } },
    },
    { bus, events },
  );
  const rotations = async () =>
    (await readdir(path.dirname(sink.logPath)).catch(() => [])).filter((n) => /^audit-.*\.chain$/u.test(n))
      .length;
  const wanted: string[] = [];
  {
    await using _running = startBackends([file], bus, events);
    for (let i = 0; i < 60; i += 1) {
      wanted.push(...(await publishMany(sink.publisher, `rotated-${i}`, 5, 'x'.repeat(3000))));
      // Never far ahead, so that there is always one to write and one to come.
      const keepsUp = async () => (await rotations()) > wanted.length - 30;
      await waitFor('the file to keep up', keepsUp, { limitMs: 30_000, everyMs: 5 });
    }
    const last = wanted.at(-1) as string;
    await waitFor('the last', async () => (await readIds(sink.logPath)).includes(last), { limitMs: 30_000 });
  }
  assert.ok((await rotations()) >= wanted.length - 1);
  assert.deepEqual((await readIds(sink.logPath)).toSorted(), wanted.toSorted());
  assert.equal((await verifyLog(sink.logPath, await sink.anchors())).fault, undefined);
});
