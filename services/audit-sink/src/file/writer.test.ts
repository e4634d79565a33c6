import assert from 'node:assert/strict';
import { appendFileSync, closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { setImmediate as tick } from 'node:timers/promises';
import { namesOf } from '@colonnade/audit-log';
import type { Entry } from './chunk.ts';
import { recover } from './recover.ts';
import { createWriter } from './writer.ts';

const folders: string[] = [];
after(async () => {
  for (const dir of folders) await rm(dir, { recursive: true, force: true });
});

async function openWriter(maxBytes = 1_000_000) {
  const dir = await mkdtemp(path.join(tmpdir(), 'colonnade-writer-'));
  folders.push(dir);
  const log = path.join(dir, 'audit.log');
  const names = namesOf(log);
  const { files } = await recover(log, names, { stream: 'made', seq: 0, storedAtNs: 0n });
  const rotated: string[] = [];
  const writer = createWriter(files, {
    path: log,
    names,
    maxBytes,
    sync: false,
    onRotated: (file) => rotated.push(file),
    onReplaced: () => {},
    describeLoss: async () => [],
  });
  return { log, names, writer, rotated };
}

const entry = (seq: number, text = `line ${seq}`): Entry => ({
  kind: 'e',
  seq,
  storedAtNs: BigInt(seq),
  lines: [Buffer.from(text)],
});

test('a log that is deleted while a write is under way: what is done stands in a file that is not deleted', async () => {
  const { log, writer } = await openWriter();
  const deleted: string[] = [];
  for (let seq = 1; seq <= 400; seq += 1) {
    const writing = writer.append([entry(seq)]);
    for (let i = 0; i < seq % 7; i += 1) await tick();
    try {
      const handle = openSync(log, 'r');
      rmSync(log);
      deleted.push(readFileSync(handle, 'utf8'));
      closeSync(handle);
    } catch {
      // Between two files there is none.
    }
    await writing;
  }
  const there = new Set([...deleted, readFileSync(log, 'utf8')].join('').split('\n'));
  const missing = Array.from({ length: 400 }, (_, i) => `line ${i + 1}`).filter((line) => !there.has(line));
  assert.deepEqual(missing, []);
  await writer.close();
});

test('lines are split among files at the limit, none is torn, and one that is too long has a file of its own', async () => {
  const { log, names, writer, rotated } = await openWriter(50);
  const long = 'x'.repeat(200);
  const entries = [entry(1), entry(2), entry(3, long), ...Array.from({ length: 20 }, (_, i) => entry(i + 4))];
  const texts = entries.map(({ lines }) => Buffer.from(lines[0] as Uint8Array).toString());
  await writer.append(entries);
  assert.equal(entries.length, 0);
  const parts = [...rotated, log].map((file) => readFileSync(file, 'utf8'));
  assert.deepEqual(parts.join('').trimEnd().split('\n'), texts);
  assert.ok(parts.every((part) => part.endsWith('\n') && (part.length <= 50 || part === `${long}\n`)));
  assert.deepEqual(
    (await names.list()).map((r) => r.log),
    rotated,
  );
  await writer.close();
});

test('what somebody else writes into the log is cut off', async () => {
  const { log, writer } = await openWriter();
  await writer.append([entry(1)]);
  appendFileSync(log, 'foreign\n');
  await writer.append([entry(2)]);
  assert.equal(readFileSync(log, 'utf8'), 'line 1\nline 2\n');
  await writer.close();
});
