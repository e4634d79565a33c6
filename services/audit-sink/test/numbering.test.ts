import assert from 'node:assert/strict';
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { verifyLog } from '@colonnade/audit-log';
import { AUDIT_STREAM, type AuditEvent, decode, EVENTS_STREAM, zCloudEvent } from '@colonnade/contracts';
import { toPlain } from '@colonnade/value';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type PreparedSink, prepareSink, publishMany, readIds, readLines, readStream } from './support.ts';

const SIZES = { maxEventsBytes: 16 * 1024 * 1024, maxAuditBytes: 16 * 1024 * 1024, replicas: 1 };

/** What the file says when the stream's numbers do not go on from its own. */
describe('numbers of the stream', () => {
  let sink: PreparedSink;
  before(async () => {
    sink = await prepareSink();
  });
  after(() => sink[Symbol.asyncDispose]());

  const gaps = async () =>
    (await readLines(sink.logPath)).map((l) => JSON.parse(l) as AuditEvent).filter((e) => e.verb === 'gap');
  const all = (wanted: readonly string[]) =>
    waitFor('all', async () => {
      const ids = new Set(await readIds(sink.logPath));
      return wanted.every((id) => ids.has(id));
    });
  const ready = async ({ url }: { url: string }) => (await fetch(`${url}/readyz`)).status;

  test('a folder that was put back refuses to go on over a hole, until that is accepted', async () => {
    const dir = path.dirname(sink.logPath);
    const saved = path.join(sink.dir, 'saved');
    {
      await using _running = await sink.start();
      await all(await publishMany(sink.publisher, 'first', 20));
    }
    await cp(dir, saved, { recursive: true });
    {
      await using _running = await sink.start();
      await all(await publishMany(sink.publisher, 'lost', 5));
    }
    await rm(dir, { recursive: true });
    await cp(saved, dir, { recursive: true });
    // Copies have other inodes: put back from a backup, the log is known by its lines, and its chain goes on.
    const later = await publishMany(sink.publisher, 'later', 5);
    {
      await using running = await sink.start();
      await waitFor('not ready', async () => (await ready(running)) === 503);
      assert.match(await (await fetch(`${running.url}/readyz`)).text(), /records 21 to 25 are gone/u);
      assert.ok(sink.logLines.some((l) => l.includes('AUDIT_LOG_ACCEPT_GAP_TO')));
      await waitFor('the alert', async () => {
        const [first] = await readStream(sink.bus, EVENTS_STREAM);
        const { data } = decode(zCloudEvent, first ?? Buffer.alloc(0));
        assert.deepEqual(toPlain(data), {
          ...{ alert: 'gap_refused', backend: 'file', details: { from: 21, to: 25 } },
        });
        return true;
      });
      assert.ok(!(await readIds(sink.logPath)).includes('later-0'));
    }
    await using running = await sink.start({ AUDIT_LOG_ACCEPT_GAP_TO: '25' });
    await all(later);
    await waitFor('ready', async () => (await ready(running)) === 200);
    const [gap] = await gaps();
    assert.equal(gap?.responseStatus?.reason, 'lost_from_stream');
    assert.deepEqual(
      [gap?.annotations?.['colonnade/gap-from'], gap?.annotations?.['colonnade/gap-to']],
      ['21', '25'],
    );
    await running[Symbol.asyncDispose]();
    const anchors = await sink.anchors();
    const { fault, lines } = await verifyLog(sink.logPath, anchors);
    const detail = 'what was there is lost, as a gap record says, an anchor vouches for 25';
    assert.deepEqual(fault, { file: 'audit.log', line: 0, seq: 25, what: 'anchor_missing', detail });
    assert.equal(lines, 26);
    // What the log says itself hides nothing that it does not say.
    const cut = path.join(sink.dir, 'cut');
    await cp(dir, cut, { recursive: true });
    for (const name of ['audit.log', 'audit.log.chain']) {
      const file = path.join(cut, name);
      const kept = (await readFile(file, 'utf8')).split('\n').slice(0, -3);
      await writeFile(file, `${kept.join('\n')}\n`);
    }
    const behind = await verifyLog(path.join(cut, 'audit.log'), anchors);
    assert.equal(behind.fault?.detail, 'the log ends at 28, an anchor vouches for 30');
  });

  test('a stream that was made anew is told from the old one, though its numbers begin again', async () => {
    const remake = async () => {
      const witness = await sink.bus.witness();
      await witness.request(`$JS.API.STREAM.DELETE.${AUDIT_STREAM}`);
      await witness.close();
      await (await sink.bus.as('provisioner')).provisionStreams(SIZES);
    };
    await remake();
    const stopped = await publishMany(sink.publisher, 'anew', 10);
    await using _running = await sink.start();
    await all(stopped);
    assert.equal((await gaps()).at(-1)?.responseStatus?.reason, 'stream_recreated');
    // And while it runs:
    await remake();
    await all(await publishMany(sink.publisher, 'running', 10));
    assert.equal((await gaps()).at(-1)?.responseStatus?.reason, 'stream_went_back');
    const ids = await readIds(sink.logPath);
    assert.equal(new Set(ids).size, ids.length);
  });
});
