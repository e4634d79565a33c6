import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { z } from 'zod';
import {
  createStateFile,
  openStateDir,
  readStateFile,
  removeStateFile,
  replaceStateFile,
} from './state-dir.ts';

const run = promisify(execFile);
const zNote = z.strictObject({ note: z.string() });

let root: string;
before(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'colonnade-state-'));
});
after(() => rm(root, { recursive: true }));

async function freshDir(name: string): Promise<string> {
  const dir = path.join(root, name);
  openStateDir(dir);
  return dir;
}

test('folders are 0700, files 0600, and nothing is left over', async () => {
  const dir = await freshDir('modes');
  const file = path.join(dir, 'a');
  assert.equal(await createStateFile(file, zNote, { note: 'one' }), true);
  assert.equal((await stat(dir)).mode & 0o777, 0o700);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  await replaceStateFile(file, zNote, { note: 'two' });
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.deepEqual(await readStateFile(file, zNote), { note: 'two' });
  assert.deepEqual(await readdir(dir), ['a']);
  assert.equal(await removeStateFile(file), true);
  assert.equal(await removeStateFile(file), false);
  assert.equal(await readStateFile(file, zNote), undefined);
});

test('a file is made once, whoever is first', async () => {
  const dir = await freshDir('once');
  const file = path.join(dir, 'a');
  const made = await Promise.all(
    Array.from({ length: 20 }, (_, i) => createStateFile(file, zNote, { note: String(i) })),
  );
  assert.equal(made.filter(Boolean).length, 1);
  assert.equal((await readStateFile(file, zNote))?.note, String(made.indexOf(true)));
  assert.deepEqual(await readdir(dir), ['a']);
});

test('a reader never sees a part of a file', async () => {
  const dir = await freshDir('whole');
  const file = path.join(dir, 'a');
  const notes = ['a'.repeat(100_000), 'b'.repeat(50)];
  await createStateFile(file, zNote, { note: notes[0] as string });
  const seen = new Set<string>();
  let writing = true;
  const reader = (async () => {
    while (writing) seen.add((await readStateFile(file, zNote))?.note ?? 'none');
  })();
  for (let i = 0; i < 50; i += 1) await replaceStateFile(file, zNote, { note: notes[i % 2] as string });
  writing = false;
  await reader;
  assert.ok([...seen].every((note) => notes.includes(note)));
});

test('what is broken, open to others, a link or a folder is refused and stays', async () => {
  const dir = await freshDir('broken');
  const file = path.join(dir, 'a');
  await writeFile(file, '{"note":1}', { mode: 0o600 });
  await assert.rejects(readStateFile(file, zNote), /not a file of this service: note/u);
  await writeFile(file, '{"note":"hush', { mode: 0o600 });
  await assert.rejects(readStateFile(file, zNote), (error: Error) => !error.message.includes('hush'));
  assert.equal(await readFile(file, 'utf8'), '{"note":"hush');
  await chmod(file, 0o604);
  await assert.rejects(readStateFile(file, zNote), /chmod 600/u);
  await symlink(file, path.join(dir, 'link'));
  await assert.rejects(readStateFile(path.join(dir, 'link'), zNote), { code: 'unavailable' });
  await mkdir(path.join(dir, 'folder'), { mode: 0o700 });
  await assert.rejects(readStateFile(path.join(dir, 'folder'), zNote), { code: 'unavailable' });
  assert.throws(() => openStateDir(file), { code: 'misconfigured' });
});

test('old temporary files go at the next start, young ones may be another replica’s', async () => {
  const dir = await freshDir('temps');
  for (const name of ['.tmp-old', '.tmp-young', 'kept'])
    await writeFile(path.join(dir, name), 'x', { mode: 0o600 });
  await utimes(path.join(dir, '.tmp-old'), 1, 1);
  openStateDir(dir);
  assert.deepEqual((await readdir(dir)).sort(), ['.tmp-young', 'kept']);
});

test('processes that start at once on an empty folder end with one key', async () => {
  const stateDir = path.join(root, 'first-start');
  const [identity, mac, state] = ['identity-keys', 'mac-key', 'state-dir'].map((name) =>
    JSON.stringify(path.join(import.meta.dirname, `${name}.ts`)),
  );
  const code = `
    const [{ loadIdentityKeys }, { loadMac }, { openStateDir }] = await Promise.all([import(${identity}), import(${mac}), import(${state})]);
    const dir = ${JSON.stringify(stateDir)};
    openStateDir(dir);
    console.log((await loadIdentityKeys(dir)).active.kid, (await loadMac(dir))('00'));`;
  const starts = Array.from({ length: 5 }, () => run(process.execPath, ['--input-type=module', '-e', code]));
  const lines = new Set((await Promise.all(starts)).map(({ stdout }) => stdout));
  assert.equal(lines.size, 1, [...lines].join());
  assert.match([...lines][0] as string, /^[\w-]{43} [0-9a-f]{64}\n$/u);
  assert.deepEqual((await readdir(stateDir)).sort(), ['identity-key.json', 'mac-key.json']);
});
