import assert from 'node:assert/strict';
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import {
  findEvents,
  formatHeader,
  formatRecord,
  nextHead,
  parseHeader,
  parseRecord,
  type Verification,
  verifyLog,
} from '@colonnade/audit-log';
import { waitFor } from '../../../test/support/wait-for.ts';
import { eventOf, type PreparedSink, prepareSink, publishMany, readIds } from './support.ts';

describe('the hash chain', () => {
  let sink: PreparedSink;
  let anchors: Awaited<ReturnType<PreparedSink['anchors']>>;
  before(async () => {
    sink = await prepareSink();
    for (const part of ['a', 'b']) {
      await using _running = await sink.start();
      const count = (await readIds(sink.logPath)).length + 50;
      await publishMany(sink.publisher, part, 50);
      await waitFor('all', async () => (await readIds(sink.logPath)).length === count);
    }
    anchors = await sink.anchors();
  });
  after(() => sink[Symbol.asyncDispose]());

  /** The log changed by someone, and what is found then. */
  const tamper = async (change: (log: string[], journal: string[]) => void): Promise<Verification> => {
    const dir = path.join(sink.dir, `tampered-${Math.random()}`);
    await cp(path.dirname(sink.logPath), dir, { recursive: true });
    const log = path.join(dir, 'audit.log');
    const [lines, records] = [await readLinesOf(log), await readLinesOf(`${log}.chain`)];
    change(lines, records);
    await writeFile(log, lines.map((l) => `${l}\n`).join(''));
    await writeFile(`${log}.chain`, records.map((l) => `${l}\n`).join(''));
    return verifyLog(log, anchors);
  };
  const readLinesOf = async (file: string) => (await readFile(file, 'utf8')).trimEnd().split('\n');

  test('an untouched log is whole, and agrees with an anchor for each time it was closed', async () => {
    const result = await verifyLog(sink.logPath, anchors);
    const { begins, ends, ...rest } = result;
    assert.deepEqual(rest, { lines: 100, anchors: 2, olderAnchors: 0, withoutLog: [], fault: undefined });
    assert.deepEqual([begins?.seq, ends?.seq], [0, 100]);
    assert.ok(Date.parse(ends?.time ?? '') > Date.now() - 600_000);
  });

  test('a line that was changed is named', async () => {
    const { fault } = await tamper((log) => {
      log[41] = (log[41] ?? '').replace('alice', 'mallory');
    });
    assert.deepEqual(fault, { file: 'audit.log', line: 42, seq: 42, what: 'line_changed' });
  });

  test('so is the place of one that was removed, and of two that changed places', async () => {
    assert.equal((await tamper((log) => log.splice(9, 1))).fault?.line, 10);
    const swapped = await tamper((log) => log.splice(70, 2, log[71] as string, log[70] as string));
    assert.equal(swapped.fault?.line, 71);
    const cut = await tamper((log) => log.splice(90));
    assert.deepEqual([cut.fault?.line, cut.fault?.what], [91, 'line_missing']);
  });

  test('who removes a record of the journal as well is found by the next one', async () => {
    const { fault } = await tamper((log, journal) => {
      log.splice(9, 1);
      journal.splice(10, 1);
    });
    assert.equal(fault?.line, 10);
  });

  test('who makes journal and chain anew differs from the anchor', async () => {
    const { fault } = await tamper((log, journal) => {
      log[41] = (log[41] ?? '').replace('alice', 'mallory');
      rebuild(log, journal);
    });
    assert.equal(fault?.what, 'anchor_differs');
    assert.equal(fault?.seq, 50);
  });

  test('a line that was put at the end or before the first one is named, and shown by no search', async () => {
    const forged = JSON.stringify(eventOf('forged'));
    for (const [add, line] of [
      [(log: string[]) => log.push(forged), 101],
      [(log: string[]) => log.unshift(forged), 1],
    ] as const) {
      const dir = path.join(sink.dir, `tampered-${Math.random()}`);
      await cp(path.dirname(sink.logPath), dir, { recursive: true });
      const log = path.join(dir, 'audit.log');
      const lines = await readLinesOf(log);
      add(lines);
      await writeFile(log, lines.map((l) => `${l}\n`).join(''));
      const { fault } = await verifyLog(log, anchors);
      assert.equal(fault?.line, line);
      assert.equal(fault?.what, line === 1 ? 'line_changed' : 'line_added');
      const found = await Array.fromAsync(findEvents(log, {}));
      assert.equal(found.length, 100);
      assert.ok(!found.some(({ event }) => event.auditID === 'forged'));
    }
  });

  test('bytes are compared, not what they decode to', async () => {
    const dir = path.join(sink.dir, 'bytes');
    await cp(path.dirname(sink.logPath), dir, { recursive: true });
    const [log, journal] = ['audit.log', 'audit.log.chain'].map((name) => path.join(dir, name));
    assert.ok(log !== undefined && journal !== undefined);
    const [lines, records] = [await readLinesOf(log), await readLinesOf(journal)];
    lines[41] = (lines[41] ?? '').replace('alice', 'a\uFFFDe');
    rebuild(lines, records);
    await writeFile(journal, records.map((l) => `${l}\n`).join(''));
    const bytes = Buffer.from(lines.map((l) => `${l}\n`).join(''));
    await writeFile(log, bytes);
    assert.equal((await verifyLog(log, [])).fault, undefined);
    const at = bytes.indexOf(Buffer.from('\uFFFD'));
    await writeFile(log, Buffer.concat([bytes.subarray(0, at), Buffer.from([0xff]), bytes.subarray(at + 3)]));
    assert.equal((await verifyLog(log, [])).fault?.what, 'line_changed');
  });

  test('a journal that is no journal any more is named', async () => {
    assert.equal((await tamper((_log, journal) => journal.splice(0, 1))).fault?.what, 'journal_broken');
    const garbled = await tamper((_log, journal) => journal.splice(5, 1, 'nonsense'));
    assert.deepEqual([garbled.fault?.what, garbled.fault?.line], ['journal_broken', 4]);
  });

  test('a tail that is cut off log and journal together is behind its anchor', async () => {
    const { fault } = await tamper((log, journal) => {
      log.splice(70);
      journal.splice(71);
    });
    assert.deepEqual([fault?.what, fault?.seq], ['anchor_missing', 100]);
    assert.equal(fault?.detail, 'the log ends at 70, an anchor vouches for 100');
  });

  test('so is a folder that was emptied', async () => {
    const dir = path.join(sink.dir, 'emptied');
    await mkdir(dir);
    const { fault } = await verifyLog(path.join(dir, 'audit.log'), anchors);
    assert.deepEqual([fault?.what, fault?.seq], ['anchor_missing', 100]);
  });

  test('numbers that no anchor names, and numbers left out, are no way round the anchors', async () => {
    const renumber = (by: (seq: number) => number) => (log: string[], journal: string[]) => {
      log[41] = (log[41] ?? '').replace('alice', 'mallory');
      rebuild(log, journal, by);
    };
    const jump = await tamper(renumber((seq) => seq + 1000));
    assert.deepEqual([jump.fault?.what, jump.fault?.line], ['sequence_jump', 1]);
    const around = await tamper(renumber((seq) => (seq < 50 ? seq : seq + 1)));
    assert.deepEqual([around.fault?.what, around.fault?.line], ['sequence_jump', 50]);
    const forged = await tamper((log, journal) => {
      renumber((seq) => seq + 1000)(log, journal);
      journal[0] = (journal[0] ?? '').replace('"seq":0', '"seq":1000');
    });
    assert.equal(forged.fault?.what, 'no_anchor_agrees');
    const elsewhere = await tamper((_log, journal) => {
      journal[0] = (journal[0] ?? '').replace(/"stream":"[^"]*"/u, '"stream":"2020-01-01T00:00:00Z"');
    });
    assert.ok(['no_anchor_agrees', 'anchor_missing'].includes(elsewhere.fault?.what ?? ''));
  });
});

describe('the hash chain over several files', () => {
  let sink: PreparedSink;
  let anchors: Awaited<ReturnType<PreparedSink['anchors']>>;
  before(async () => {
    sink = await prepareSink();
    for (const part of ['a', 'b', 'c']) {
      await using _running = await sink.start({ AUDIT_LOG_MAXSIZE: '1' });
      await publishMany(sink.publisher, part, 400, 'x'.repeat(2500));
      await waitFor(
        'all',
        async () => (await readIds(sink.logPath)).filter((id) => id.startsWith(part)).length === 400,
      );
    }
    anchors = await sink.anchors();
    assert.ok((await rotatedOf(path.dirname(sink.logPath))).length >= 2);
  });
  after(() => sink[Symbol.asyncDispose]());

  const rotatedOf = async (dir: string) =>
    (await readdir(dir)).filter((n) => /^audit-.*\.log$/u.test(n)).sort();
  /** A copy of the folder, changed; what is found then. */
  const without = async (change: (dir: string, rotated: string[]) => Promise<void>) => {
    const dir = path.join(sink.dir, `without-${Math.random()}`);
    await cp(path.dirname(sink.logPath), dir, { recursive: true });
    await change(dir, await rotatedOf(dir));
    return (await verifyLog(path.join(dir, 'audit.log'), anchors)).fault;
  };

  test('the oldest file may go only by the sink, which puts that on record', async () => {
    assert.equal(await without(async () => {}), undefined);
    const [one, both] = [[''], ['', '.chain']].map((ends) =>
      without(async (dir, [oldest]) => {
        for (const end of ends) await rm(path.join(dir, `${oldest}${end}`));
      }),
    );
    assert.deepEqual([(await one)?.what, (await both)?.what], ['file_missing', 'beginning_missing']);
  });

  test('a prefix that is cut off one file, with journal and header, is missed', async () => {
    const fault = await without(async (dir, rotated) => {
      for (const name of rotated.slice(0, 2)) {
        await rm(path.join(dir, name));
        await rm(path.join(dir, `${name}.chain`));
      }
      const log = path.join(dir, rotated[2] ?? 'audit.log');
      const lines = (await readFile(log, 'utf8')).split('\n');
      const [header = '', ...records] = (await readFile(`${log}.chain`, 'utf8')).trimEnd().split('\n');
      const cut = parseRecord(records[9] ?? '');
      assert.ok(cut !== undefined);
      const { seq, head, end } = cut;
      const begun = { ...parseHeader(header), seq, head, stored_at_ns: String(cut.storedAtNs), previous: '' };
      const rest = records.slice(10).map((text) => {
        const record = parseRecord(text);
        assert.ok(record !== undefined);
        return formatRecord({ ...record, end: record.end - end });
      });
      await writeFile(log, lines.slice(10).join('\n'));
      await writeFile(`${log}.chain`, [formatHeader(begun), ...rest].join(''));
    });
    assert.equal(fault?.what, 'beginning_missing');
  });

  test('a file without a journal is named, and shown by no search', async () => {
    const forged = `${JSON.stringify({ ...eventOf('forged') })}\n`;
    const fault = await without(async (dir) => {
      await writeFile(path.join(dir, 'audit-2020-01-01T00-00-00.000.log'), forged);
      const skipped: unknown[] = [];
      const log = path.join(dir, 'audit.log');
      const found = await Array.fromAsync(
        findEvents(log, { auditID: 'forged' }, { onSkipped: (one) => skipped.push(one) }),
      );
      assert.deepEqual(found, []);
      assert.deepEqual(skipped, [{ file: 'audit-2020-01-01T00-00-00.000.log', lines: undefined }]);
    });
    assert.deepEqual([fault?.what, fault?.file], ['file_unvouched', 'audit-2020-01-01T00-00-00.000.log']);
    const bare = await without((dir) => rm(path.join(dir, 'audit.log.chain')));
    assert.equal(bare?.what, 'file_unvouched');
  });

  test('the newest files may not, though nothing of them is left', async () => {
    const fault = await without(async (dir, rotated) => {
      for (const name of ['audit.log', rotated.at(-1) ?? '']) {
        await rm(path.join(dir, name));
        await rm(path.join(dir, `${name}.chain`));
      }
    });
    assert.deepEqual([fault?.what, fault?.seq], ['anchor_missing', 800]);
  });

  test('a log whose journal is still there may not be gone from the middle or the end', async () => {
    const middle = await without((dir, rotated) => rm(path.join(dir, rotated[1] ?? '')));
    assert.equal(middle?.what, 'file_missing');
    const newest = await without((dir) => rm(path.join(dir, 'audit.log')));
    assert.deepEqual([newest?.what, newest?.file], ['file_missing', 'audit.log']);
  });

  test('a file of another stream has to say so', async () => {
    const fault = await without(async (dir) => {
      const journal = path.join(dir, 'audit.log.chain');
      const text = await readFile(journal, 'utf8');
      await writeFile(journal, text.replace(/"stream":"[^"]*"/u, '"stream":"2020-01-01T00:00:00Z"'));
    });
    assert.deepEqual([fault?.what, fault?.line], ['numbering_changed', 1]);
  });

  test('a rotation that was killed between its two renames has lost nothing', async () => {
    const fault = await without(async (dir) => {
      const log = path.join(dir, 'audit.log');
      await rename(`${log}.chain`, path.join(dir, 'audit-2099-01-01T00-00-00.000.log.chain'));
    });
    assert.equal(fault, undefined);
  });

  test('a folder, a log that is not there and a compressed file that is cut are named to who searches', async () => {
    const search = (log: string) => Array.fromAsync(findEvents(log, {}));
    const code = 'not_found';
    await assert.rejects(search(path.join(sink.dir, 'none', 'audit.log')), {
      code,
      message: /no folder .*none/u,
    });
    await assert.rejects(search(path.join(sink.dir, 'other.log')), { code, message: /other\.log/u });
    await without(async (dir, [name]) => {
      const file = path.join(dir, name ?? '');
      await writeFile(`${file}.gz`, gzipSync(await readFile(file)).subarray(0, 1000));
      await rm(file);
      await assert.rejects(search(path.join(dir, 'audit.log')), { code, message: /\.log\.gz/u });
    });
  });

  test('a compressed file that is cut is named', async () => {
    const fault = await without(async (dir, [, name]) => {
      const file = path.join(dir, name ?? '');
      await writeFile(`${file}.gz`, gzipSync(await readFile(file)).subarray(0, 1000));
      await rm(file);
    });
    assert.equal(fault?.what, 'file_unreadable');
    assert.match(fault?.file ?? '', /^audit-/u);
  });

  test('a range of sequences is found by the journal, over the files', async () => {
    const found = await Array.fromAsync(findEvents(sink.logPath, {}, { range: { from: 390, to: 811 } }));
    assert.equal(found.length, 422);
    const ids = await readIds(sink.logPath);
    assert.deepEqual(
      found.map(({ event }) => event.auditID),
      ids.slice(389, 811),
    );
  });

  test('the live log deleted while the sink writes is a fault, and the next file says what was in it', async () => {
    await using running = await sink.start({ AUDIT_LOG_MAXSIZE: '1' });
    await rm(sink.logPath);
    await publishMany(sink.publisher, 'later', 1);
    const lines = await waitFor('the record of what was in it', async () => {
      const text = await readFile(sink.logPath, 'utf8').catch(() => '');
      return text.includes('later-0') ? text.trimEnd().split('\n') : undefined;
    });
    const gap = JSON.parse(lines[0] ?? '');
    assert.equal(gap.responseStatus.reason, 'file_gone');
    assert.equal(gap.annotations['colonnade/gap-to'], '1200');
    const { fault, withoutLog } = await verifyLog(sink.logPath, await sink.anchors());
    assert.deepEqual([fault?.what, withoutLog.length], ['file_missing', 1]);
    const metrics = await (await fetch(`${running.url}/metrics`)).text();
    assert.match(metrics, /audit_sink_gaps_total\{backend="file",reason="file_gone"[^}]*\} 1/u);
  });
});

/** As someone does it who knows how the chain is made. */
function rebuild(log: readonly string[], journal: string[], seqOf = (seq: number) => seq): void {
  let head = '0'.repeat(64);
  let end = 0;
  for (const [i, line] of log.entries()) {
    const record = parseRecord(journal[i + 1] ?? '');
    assert.ok(record !== undefined);
    const seq = seqOf(record.seq);
    head = nextHead(head, { ...record, seq }, Buffer.from(line));
    end += Buffer.byteLength(line) + 1;
    journal[i + 1] = formatRecord({ ...record, seq, head, end }).trimEnd();
  }
}
