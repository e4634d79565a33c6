import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { link, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { findEvents, verifyLog } from '@colonnade/audit-log';
import { AUDIT_STREAM, type AuditEvent, encode, zAuditEvent } from '@colonnade/contracts';
import { skipWithoutMount, smallDisk } from '../../../test/support/small-disk.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import {
  eventOf,
  type PreparedSink,
  prepareSink,
  publish,
  publishList,
  publishMany,
  readIds,
  readLines,
} from './support.ts';

const status = async (running: { url: string }) => (await fetch(`${running.url}/readyz`)).status;
let folders = 0;

describe('the file', () => {
  let sink: PreparedSink;
  before(async () => {
    sink = await prepareSink({ maxAuditBytes: 64 * 1024 * 1024, maxFileBytes: 256 * 1024 * 1024 });
  });
  after(() => sink[Symbol.asyncDispose]());

  /** A log in a folder of its own, empty of what tests before have stored. */
  const fresh = async (dir = path.join(sink.dir, `log-${++folders}`)) => {
    const log = path.join(dir, 'audit.log');
    const start = (changes: Record<string, string> = {}) => sink.start({ AUDIT_LOG_PATH: log, ...changes });
    const has = (wanted: readonly string[], extra: readonly string[] = []) =>
      waitFor(
        'all in the file',
        async () => {
          const ids = (await readIds(log, extra)).filter((id) => !id.startsWith('gap-'));
          return ids.length >= wanted.length ? ids : undefined;
        },
        { limitMs: 30_000 },
      );
    return { log, dir, start, has };
  };

  test('holds every acknowledged record once, in the order of the stream, across restarts', async () => {
    const { log, start, has } = await fresh();
    const wanted = await publishMany(sink.publisher, 'before', 100);
    for (const [name, fsync] of Object.entries({ first: 'always', second: 'never', third: 'batch' })) {
      await using _running = await start({ AUDIT_LOG_FSYNC: fsync });
      wanted.push(...(await publishMany(sink.publisher, name, 300)));
      await has(wanted);
    }
    assert.deepEqual([...(await readIds(log))].sort(), [...wanted].sort());
  });

  test('a stream that was drained into another file begins with a record of what is not here', async () => {
    const { log, start, has } = await fresh();
    await using _running = await start();
    await has(await publishMany(sink.publisher, 'after', 5));
    const [first] = (await readLines(log)).map((line) => JSON.parse(line) as AuditEvent);
    assert.equal(first?.verb, 'gap');
    assert.equal(first?.annotations?.['colonnade/gap-reason'], 'before_this_file');
    assert.equal(first?.annotations?.['colonnade/gap-from'], '1');
  });

  test('goes on in a new file when its own is moved, deleted, or SIGHUP comes; nothing is lost', async () => {
    const { log, dir, start, has } = await fresh();
    await using _running = await start();
    const wanted = await publishMany(sink.publisher, 'kept', 50);
    await has(wanted);
    const moved = path.join(dir, 'moved-away');
    await rename(log, moved);
    process.kill(process.pid, 'SIGHUP');
    await waitFor('a new file without any record', async () => (await readFile(log)).length === 0);
    wanted.push(...(await publishMany(sink.publisher, 'moved', 50)));
    await has(wanted, [moved]);
    const second = path.join(dir, 'second');
    await link(log, second);
    const flow = publishMany(sink.publisher, 'deleted', 2000);
    await rm(log);
    wanted.push(...(await flow));
    await has(wanted, [moved, second]);
    const ids = await readIds(log, [moved, second]);
    assert.deepEqual(ids.filter((id) => !id.startsWith('gap-')).sort(), [...wanted].sort());
    const verified = await verifyLog(log, await sink.anchors());
    assert.equal(verified.fault?.what, 'file_missing');
    assert.equal(verified.withoutLog.length, 2);
  });

  test('a log that is cut from outside says how many records it lost', async () => {
    const { log, start, has } = await fresh();
    await using _running = await start();
    await has(await publishMany(sink.publisher, 'cut', 20));
    const whole = await readFile(log, 'utf8');
    await writeFile(log, whole.split('\n').slice(0, 11).join('\n').concat('\n'));
    await publishMany(sink.publisher, 'more', 1);
    const gap = await waitFor('the gap', async () =>
      (await readLines(log))
        .map((l) => JSON.parse(l) as AuditEvent)
        .find((e) => e.responseStatus?.reason === 'file_shrank'),
    );
    assert.equal(gap.annotations?.['colonnade/gap-count'], '10');
    await waitFor('the next', async () => (await readIds(log)).at(-1) === 'more-0');
  });

  test('rotated every few milliseconds and compressed, it has no torn line and misses nothing', async () => {
    const { log, dir, start, has } = await fresh();
    const wanted = await publishMany(sink.publisher, 'rotated', 6000, 'x'.repeat(2500));
    const running = await start({ AUDIT_LOG_MAXSIZE: '1', AUDIT_LOG_COMPRESS: 'true' });
    assert.deepEqual((await has(wanted)).sort(), [...wanted].sort());
    await waitFor(
      'compression',
      async () => (await readdir(dir)).filter((n) => n.endsWith('.log.gz')).length >= 15,
    );
    await running[Symbol.asyncDispose]();
    assert.equal((await verifyLog(log, await sink.anchors())).fault, undefined);
    const found = await Array.fromAsync(findEvents(log, { auditID: 'rotated-17' }));
    assert.equal(found.length, 1);
    assert.match(found[0]?.file ?? '', /^audit-/u);
    await using _again = await start({ AUDIT_LOG_MAXBACKUP: '3' });
    await waitFor(
      'only three',
      async () => (await readdir(dir)).filter((n) => /^audit-.*log(\.gz)?$/u.test(n)).length === 3,
    );
    const journals = async () => (await readdir(dir)).filter((n) => n.endsWith('.chain')).length;
    await waitFor('their journals and the one in use', async () => (await journals()) === 4);
    // What was removed is on record, so that the log is whole without it.
    const kept = await verifyLog(log, await sink.anchors());
    assert.equal(kept.fault, undefined);
    assert.ok((kept.begins?.seq ?? 0) > 0);
    const removals = (await readLines(log)).filter((line) => line.includes('removed_by_rotation'));
    assert.equal(removals.length, 1);
  });

  test('a full disk stops acknowledging and fails readiness; it goes on by itself', {
    skip: skipWithoutMount(),
  }, async () => {
    await using disk = await smallDisk(6);
    const filler = path.join(disk.path, 'filler');
    await writeFile(filler, Buffer.alloc(4 * 1024 * 1024));
    const { log, start, has } = await fresh(path.join(disk.path, 'audit'));
    await using running = await start({ AUDIT_LOG_MAXSIZE: '1' });
    const wanted = await publishMany(sink.publisher, 'full', 1200, 'y'.repeat(2500));
    await waitFor('not ready', async () => (await status(running)) === 503);
    assert.match(await (await fetch(`${running.url}/readyz`)).text(), /ENOSPC/u);
    assert.match(
      await (await fetch(`${running.url}/metrics`)).text(),
      /audit_sink_failing\{backend="file",service="audit-sink"\} 1/u,
    );
    const before = (await readIds(log)).length;
    assert.ok(before < wanted.length, 'all of it fitted');
    await rm(filler);
    assert.deepEqual((await has(wanted)).sort(), [...wanted].sort());
    await waitFor('ready', async () => (await status(running)) === 200);
    assert.equal((await verifyLog(log, await sink.anchors())).fault, undefined);
  });

  test('as a legacy line, and on standard output, where nothing else is written', async () => {
    const { log, start } = await fresh();
    {
      await using _running = await start({ AUDIT_LOG_FORMAT: 'legacy' });
      await publish(sink.publisher, eventOf('legacy'));
      const line = await waitFor('it', async () =>
        (await readLines(log)).find((l) => l.includes('id="legacy"')),
      );
      assert.match(
        line,
        /^2026-01-31T12:00:00\.0001Z AUDIT: id="legacy" stage="ResponseComplete" ip="<unknown>"/u,
      );
    }
    const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));
    const env = { ...process.env, ...sink.env, AUDIT_LOG_PATH: '-' };
    const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
    });
    const ids = await publishMany(sink.publisher, 'stdout', 30);
    try {
      await waitFor('all', () => out.includes(`"${ids.at(-1)}"`), { limitMs: 60_000 });
    } finally {
      // One that is left behind would take the records of the tests after this one.
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    assert.deepEqual(
      out
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as AuditEvent).auditID),
      ids,
    );
  });

  test('of two replicas one writes; the other takes over when it ends', async () => {
    const { log, start, has } = await fresh();
    const first = await start();
    const wanted = await publishMany(sink.publisher, 'one', 50);
    await has(wanted);
    await using second = await start();
    assert.equal(await status(second), 200);
    wanted.push(...(await publishMany(sink.publisher, 'still', 50)));
    await has(wanted);
    assert.match(await (await fetch(`${second.url}/metrics`)).text(), /audit_sink_file_writer\{[^}]*\} 0/u);
    await first[Symbol.asyncDispose]();
    wanted.push(...(await publishMany(sink.publisher, 'two', 50)));
    assert.deepEqual((await has(wanted)).sort(), [...wanted].sort());
    assert.equal((await readIds(log)).filter((id) => !id.startsWith('gap-')).length, wanted.length);
  });

  test('whoever holds a lock that was removed stops writing; with two, one goes on', async () => {
    const { log, start, has } = await fresh();
    await using first = await start();
    const wanted = await publishMany(sink.publisher, 'held', 50);
    await has(wanted);
    await using second = await start();
    for (const round of [1, 2]) {
      await rm(`${log}.lock`);
      wanted.push(...(await publishMany(sink.publisher, `removed-${round}`, 200)));
      await has(wanted);
      const writers = async () => {
        const texts = await Promise.all([first, second].map(({ url }) => fetch(`${url}/metrics`)));
        const found = await Promise.all(
          texts.map(async (one) => (await one.text()).match(/file_writer\{[^}]*\} (\d)/u)),
        );
        return found
          .map((one) => one?.[1])
          .sort()
          .join();
      };
      await waitFor('one writer', async () => (await writers()) === '0,1', { limitMs: 20_000 });
    }
    const written = (await readIds(log)).filter((id) => !id.startsWith('gap-'));
    assert.deepEqual(written.sort(), [...wanted].sort());
    assert.equal((await verifyLog(log, [])).fault, undefined);
    assert.ok(sink.logLines.some((line) => line.includes('the lock was removed')));
  });

  test('what is no event becomes a dead letter, and nothing behind it waits', async () => {
    const { start, has } = await fresh();
    await using _running = await start();
    const before = (await sink.deadLetters()).length;
    const good = encode(zAuditEvent, eventOf('good'));
    const text = Buffer.from(good).toString();
    const bad: [string | Uint8Array, string][] = [
      ['not JSON at all', 'not_json'],
      [new Uint8Array([0x7b, 0xff, 0x7d]), 'not_json'],
      ['', 'not_json'],
      ['[]', 'not_an_event'],
      [text.replace('audit.k8s.io/v1', 'audit.k8s.io/v1beta1'), 'not_an_event'],
      [text.replace('"Event"', '"Policy"'), 'not_an_event'],
      [text.replace('ResponseComplete', 'Later'), 'not_an_event'],
      [text.replace('"good"', '7'), 'not_an_event'],
    ];
    for (const [payload] of bad) await publish(sink.publisher, Buffer.from(payload as never));
    await publish(sink.publisher, good);
    assert.deepEqual(await has(['good']), ['good']);
    const letters = (await sink.deadLetters()).slice(before);
    assert.deepEqual(
      letters.map((l) => l.reason),
      bad.map(([, reason]) => reason),
    );
    assert.deepEqual(
      letters.map((l) => Buffer.from(l.payload_b64, 'base64').toString('hex')),
      bad.map(([payload]) => Buffer.from(payload as never).toString('hex')),
    );
  });

  test('records that came in one message are lines of their own, once each', async () => {
    const { log, start, has } = await fresh();
    await using _running = await start({ AUDIT_LOG_MAXSIZE: '1' });
    const wanted: string[] = [];
    for (let i = 0; i < 30; i += 1) {
      const ids = Array.from({ length: 1 + (i % 40) }, (_, k) => `list-${i}-${k}`);
      await publishList(
        sink.publisher,
        ids.map((id) => eventOf(id, { userAgent: 'x'.repeat(3000) })),
      );
      wanted.push(...ids);
    }
    assert.deepEqual(await has(wanted), wanted);
    const { fault, lines } = await verifyLog(log, await sink.anchors());
    assert.equal(fault, undefined);
    assert.ok(lines >= wanted.length);
  });

  test('line ends and separators in every text stay within one line, and come back as they were', async () => {
    const { log, start, has } = await fresh();
    await using _running = await start();
    const nasty = 'a\nb\r\nc\u2028d\u2029e\u0085f\u0000g\t"\\ü😀<&>';
    const event = eventOf('nasty', {
      level: 'RequestResponse',
      requestURI: nasty,
      verb: nasty,
      user: { username: nasty, groups: [nasty] },
      sourceIPs: [nasty],
      userAgent: nasty,
      objectRef: { resource: nasty, namespace: nasty, name: nasty, apiGroup: nasty, subresource: nasty },
      responseStatus: { code: 200, reason: nasty, message: nasty, status: nasty },
      requestObject: { [nasty]: [nasty, 1n, 1, 9007199254740993n] },
      responseObject: nasty,
      annotations: { [nasty]: nasty },
    });
    await publish(sink.publisher, event);
    const pretty = JSON.stringify(
      JSON.parse(Buffer.from(encode(zAuditEvent, eventOf('pretty'))).toString()),
      null,
      2,
    );
    await publish(sink.publisher, Buffer.from(pretty));
    await has(['nasty', 'pretty']);
    const bytes = await readFile(log, 'utf8');
    const lines = bytes.split(/[\n\u2028\u2029\r]/u).filter((line) => line !== '' && !line.includes('"gap"'));
    assert.equal(lines.length, 2);
    assert.deepEqual(
      Buffer.from(lines[0]?.replaceAll('\\u2028', '\u2028').replaceAll('\\u2029', '\u2029') ?? ''),
      Buffer.from(encode(zAuditEvent, event)),
    );
    assert.equal(JSON.parse(lines[1] ?? '').auditID, 'pretty');
  });

  test('the stream keeps nothing that the file has', async () => {
    const { start, has } = await fresh();
    await using _running = await start();
    await has(await publishMany(sink.publisher, 'trim', 30));
    const witness = await sink.bus.witness();
    await waitFor('an empty stream', async () => {
      const info = await witness.request(`$JS.API.STREAM.INFO.${AUDIT_STREAM}`);
      return info.json<{ state: { messages: number } }>().state.messages === 0;
    });
  });
});
