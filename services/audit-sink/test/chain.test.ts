import assert from 'node:assert/strict';
import { cp, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { formatRecord, nextHead, parseRecord, type Verification, verifyLog } from '@colonnade/audit-log';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type PreparedSink, prepareSink, publishMany, readIds } from './support.ts';

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
    assert.deepEqual(result, { lines: 100, anchors: 2, withoutLog: [], fault: undefined });
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

  test('a journal that is no journal any more is named', async () => {
    assert.equal((await tamper((_log, journal) => journal.splice(0, 1))).fault?.what, 'journal_broken');
    const garbled = await tamper((_log, journal) => journal.splice(5, 1, 'nonsense'));
    assert.deepEqual([garbled.fault?.what, garbled.fault?.line], ['journal_broken', 4]);
  });
});

/** As someone does it who knows how the chain is made. */
function rebuild(log: readonly string[], journal: string[]): void {
  let head = '0'.repeat(64);
  let end = 0;
  for (const [i, line] of log.entries()) {
    const record = parseRecord(journal[i + 1] ?? '');
    assert.ok(record !== undefined);
    head = nextHead(head, record.seq, Buffer.from(line));
    end += Buffer.byteLength(line) + 1;
    journal[i + 1] = formatRecord({ ...record, head, end }).trimEnd();
  }
}
