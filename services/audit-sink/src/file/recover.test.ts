import assert from 'node:assert/strict';
import {
  appendFile,
  cp,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { CHAIN_START, namesOf, verifyLog } from '@colonnade/audit-log';
import { buildChunk, type Entry } from './chunk.ts';
import { recover } from './recover.ts';
import { createWriter } from './writer.ts';

const folders: string[] = [];
after(async () => {
  for (const dir of folders) await rm(dir, { recursive: true, force: true });
});

const FRESH = { stream: 'made', seq: 0, storedAtNs: 0n };
const entry = (seq: number): Entry => ({
  kind: 'e',
  seq,
  storedAtNs: BigInt(seq),
  lines: [Buffer.from(`line ${seq}`)],
});

/** A log with five lines, as a writer that was killed leaves it. */
async function prepare() {
  const dir = await mkdtemp(path.join(tmpdir(), 'colonnade-recover-'));
  folders.push(dir);
  const log = path.join(dir, 'audit.log');
  const names = namesOf(log);
  /** Opens it, adds lines, and lets go without a word. */
  const open = async (...seqs: number[]) => {
    const { files, found } = await recover(log, names, FRESH);
    const writer = createWriter(files, {
      path: log,
      names,
      maxBytes: 1_000_000,
      sync: true,
      onRotated: () => {},
      onReplaced: () => {},
      describeLoss: async () => [],
    });
    const place = writer.place();
    await writer.append(seqs.map(entry));
    await writer.close();
    return { found, place };
  };
  await open(1, 2, 3, 4, 5);
  return { dir, log, journal: names.journal, open };
}

async function expectWhole(log: string, lines: number): Promise<void> {
  const { fault, lines: found } = await verifyLog(log, []);
  assert.equal(fault, undefined);
  assert.equal(found, lines);
}

const STAMP = '2026-01-31T12-00-00.000';

test('lines that no record vouches for are cut off, whole ones and torn ones', async () => {
  const { log, open } = await prepare();
  await appendFile(log, 'line 6\nline 7\nlin');
  await open();
  assert.equal(await readFile(log, 'utf8'), [1, 2, 3, 4, 5].map((n) => `line ${n}\n`).join(''));
  await appendFile(log, 'line 6\nline 7\nlin');
  const { found, place } = await open(6);
  assert.deepEqual([found, place.seq], ['intact', 5]);
  assert.equal(await readFile(log, 'utf8'), [1, 2, 3, 4, 5, 6].map((n) => `line ${n}\n`).join(''));
  await expectWhole(log, 6);
});

for (const torn of [
  'e 6',
  'e 6 6 42 abc\n',
  'e 6 6 42 abc',
  '\0'.repeat(200_000),
  `${'x'.repeat(100_000)}\n`,
]) {
  test(`a torn record counts for nothing: ${JSON.stringify(torn.slice(0, 12))}, ${torn.length} bytes`, async () => {
    const { log, journal, open } = await prepare();
    await appendFile(log, 'line 6\n');
    await appendFile(journal, torn);
    assert.equal((await open(6)).place.seq, 5);
    await expectWhole(log, 6);
  });
}

test('of a message with several lines, all count or none', async () => {
  const { log, journal, open } = await prepare();
  const { files } = await recover(log, namesOf(log), FRESH);
  const chunk = buildChunk(
    [{ kind: 'e', seq: 6, storedAtNs: 6n, lines: ['6a', '6b', '6c'].map((text) => Buffer.from(text)) }],
    files.end,
    files.place,
  );
  await files.log.close();
  await files.journal.close();
  await appendFile(log, chunk.data);
  const records = chunk.records.toString().split('\n');
  await appendFile(journal, `${records[0]}\n${records[1]}\n`);
  assert.equal((await open()).place.seq, 5);
  assert.ok(!(await readFile(log, 'utf8')).includes('6a'));
  await appendFile(log, chunk.data);
  await appendFile(journal, chunk.records);
  assert.equal((await open(7)).place.seq, 6);
  await expectWhole(log, 9);
});

test('a record that was cut takes its line with it', async () => {
  const { log, journal, open } = await prepare();
  await truncate(journal, (await readFile(journal)).length - 10);
  assert.equal((await open(5, 6)).place.seq, 4);
  await expectWhole(log, 6);
});

test('a kill between the two renames of a rotation: it is finished, with nothing torn', async () => {
  const { dir, log, journal, open } = await prepare();
  await rename(journal, path.join(dir, `audit-${STAMP}.log.chain`));
  await appendFile(log, 'torn');
  const { found, place } = await open(6);
  assert.deepEqual([found, place.seq], ['intact', 5]);
  const names = (await readdir(dir)).sort();
  assert.deepEqual(names, [`audit-${STAMP}.log`, `audit-${STAMP}.log.chain`, 'audit.log', 'audit.log.chain']);
  await expectWhole(log, 6);
});

test('a kill after both renames, with and without the next file', async () => {
  for (const next of [false, true]) {
    const { dir, log, journal, open } = await prepare();
    await rename(journal, path.join(dir, `audit-${STAMP}.log.chain`));
    await rename(log, path.join(dir, `audit-${STAMP}.log`));
    if (next) await writeFile(log, '');
    await writeFile(`${journal}.new`, '{"half of a header');
    assert.equal((await open(6)).place.seq, 5);
    await expectWhole(log, 6);
  }
});

test('a log that was moved, deleted, or replaced by a foreign one: the chain goes on, and what is missing is a fault', async () => {
  for (const replace of [undefined, '', 'foreign line\n', 'foreign line without its end']) {
    const { dir, log, open } = await prepare();
    await rename(log, path.join(dir, 'elsewhere'));
    if (replace !== undefined) await writeFile(log, replace);
    const { found, place } = await open(6);
    assert.deepEqual([found, place.seq], ['moved', 5]);
    // What stood there is nobody's to vouch for: it has another name now.
    assert.equal(await readFile(log, 'utf8'), 'line 6\n');
    const foreign = (await readdir(dir)).filter((name) => name.startsWith('audit.log.foreign-'));
    const texts = await Promise.all(foreign.map((name) => readFile(path.join(dir, name), 'utf8')));
    assert.deepEqual(texts, replace ? [replace] : []);
    const { fault, withoutLog } = await verifyLog(log, []);
    assert.equal(fault?.what, 'file_missing');
    assert.equal(withoutLog.length, 1);
  }
});

test('a log that was put back from a backup goes on, and one with another line of the same length does not', async () => {
  const { dir, log, open } = await prepare();
  await rename(log, path.join(dir, 'elsewhere'));
  await cp(path.join(dir, 'elsewhere'), log);
  const { found, place } = await open(6);
  assert.deepEqual([found, place.seq], ['intact', 5]);
  await expectWhole(log, 6);
  const text = await readFile(log, 'utf8');
  await rm(log);
  await writeFile(log, text.replace('line 2', 'line X'));
  assert.equal((await open(7)).found, 'moved');
});

test('a copy that was made while the log was written keeps what it has, and what it lacks is named', async () => {
  for (const bytes of [21, 24]) {
    const { dir, log, open } = await prepare();
    // Kept, so that the copy cannot get its inode.
    await rename(log, path.join(dir, 'original'));
    await writeFile(log, (await readFile(path.join(dir, 'original'))).subarray(0, bytes));
    const { found, place } = await open(6);
    assert.deepEqual([found, place.seq], ['shrunk', 5]);
    const names = await readdir(dir);
    assert.ok(!names.some((name) => name.includes('foreign')), names.join(' '));
    const kept = names.find((name) => /^audit-.*\.log$/u.test(name)) ?? '';
    assert.match(await readFile(path.join(dir, kept), 'utf8'), /^line 1\nline 2\nline 3\n/u);
    const { fault } = await verifyLog(log, []);
    assert.deepEqual([fault?.what, fault?.line, fault?.file], ['line_missing', 4, kept]);
  }
});

test('a backup made between the two renames of a rotation is put right by its lines', async () => {
  const { dir, log, journal, open } = await prepare();
  await rename(journal, path.join(dir, `audit-${STAMP}.log.chain`));
  await rename(log, path.join(dir, 'original'));
  await cp(path.join(dir, 'original'), log);
  assert.deepEqual([(await open(6)).found, (await readdir(dir)).length], ['intact', 5]);
  await expectWhole(log, 6);
});

test('a log shorter than its journal says is found shrunk, and goes on', async () => {
  const { dir, log, open } = await prepare();
  await truncate(log, 14);
  const { found, place } = await open(6);
  assert.deepEqual([found, place.seq], ['shrunk', 5]);
  assert.equal(await readFile(log, 'utf8'), 'line 6\n');
  const [rotated = ''] = (await readdir(dir)).filter((name) => /^audit-.*\.log$/u.test(name));
  assert.equal(await readFile(path.join(dir, rotated), 'utf8'), 'line 1\nline 2\n');
  const { fault } = await verifyLog(log, []);
  assert.deepEqual([fault?.what, fault?.line, fault?.file], ['line_missing', 3, rotated]);
});

test('without any journal it begins anew, and what is there gets another name', async () => {
  const { log, journal, open } = await prepare();
  await rm(journal);
  const { found, place } = await open(1);
  assert.deepEqual([found, place.seq, place.head], ['fresh', 0, CHAIN_START]);
  assert.equal(await readFile(log, 'utf8'), 'line 1\n');
});

test('a file that is no journal is left as it is, and named', async () => {
  const { journal, open } = await prepare();
  const older = (await readFile(journal, 'utf8')).replace('chain/2', 'chain/1');
  for (const text of ['something else\n', older]) {
    await writeFile(journal, text);
    await assert.rejects(open(6), { code: 'misconfigured', message: /audit\.log\.chain.*chain\/2/u });
    assert.equal(await readFile(journal, 'utf8'), text);
  }
});
