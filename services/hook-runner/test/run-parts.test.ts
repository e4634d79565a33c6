import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { findOnPath } from '@colonnade/embedded/servers';
import fc from 'fast-check';
import { type HookFolder, hookFolder } from './hooks-support.ts';

const skip =
  findOnPath('run-parts', process.env).length === 0 && 'no run-parts on the PATH (Debian: debianutils)';

/**
 * Where the rules of both agree: which files are hooks and in which order they run, what an exit code of 0 means, that an
 * error stops the run. Theirs differ on names (run-parts takes what a pattern matches), on warnings, which it does not
 * know, and on dangling links, at which it gives up.
 */
type Entry = { name: string; kind: 'hook' | 'not executable' | 'folder' | 'link to a hook'; code: number };

const entries: fc.Arbitrary<Entry[]> = fc.uniqueArray(
  fc.record({
    name: fc
      .oneof(fc.stringMatching(/^[A-Za-z0-9_.-]{1,12}$/u), fc.stringMatching(/^[0-9]{2}-[a-zéß✓𝄞 ']{1,6}$/u))
      .filter((name) => !['.', '..', 'target'].includes(name) && !name.toLowerCase().endsWith('.disabled')),
    kind: fc.constantFrom<Entry['kind']>(
      'hook',
      'hook',
      'hook',
      'not executable',
      'folder',
      'link to a hook',
    ),
    code: fc.constantFrom(0, 0, 0, 0, 1, 31),
  }),
  { selector: ({ name }) => name, maxLength: 8 },
);

async function make(hooks: HookFolder, { name, kind, code }: Entry): Promise<void> {
  const file = path.join(hooks.path, name);
  if (kind === 'folder') return void (await mkdir(file));
  const outside = path.join(path.dirname(hooks.path), `target of ${name}`);
  const script = await hooks.add(kind === 'link to a hook' ? `../target of ${name}` : name, '');
  await writeFile(script, `#!/bin/sh\necho "$0"\nexit ${code}\n`);
  if (kind === 'not executable') await chmod(script, 0o644);
  if (kind === 'link to a hook') await symlink(outside, file);
}

/** Which hooks run-parts runs, and whether it was content. */
async function runParts(folder: string): Promise<{ ran: string[]; ok: boolean }> {
  const options = { env: { PATH: process.env.PATH, LC_ALL: 'C' } };
  const lines = (text: string) => text.split('\n').filter((line) => line !== '');
  try {
    const { stdout } = await promisify(execFile)(
      'run-parts',
      ['--exit-on-error', '--regex=.*', folder],
      options,
    );
    return { ran: lines(stdout), ok: true };
  } catch (thrown) {
    return { ran: lines((thrown as { stdout: string }).stdout), ok: false };
  }
}

test('any folder: the same hooks run in the same order, and stop at the same one, as with run-parts', {
  skip,
}, async () => {
  const seen = { stopped: 0, ran: 0 };
  await fc.assert(
    fc.asyncProperty(entries, async (folder) => {
      await using hooks = await hookFolder();
      for (const entry of folder) await make(hooks, entry);
      const [theirs, ours] = await Promise.all([runParts(hooks.path), hooks.run()]);
      assert.deepEqual(
        ours.results.map(({ stdout }) => stdout.replace(/\n$/u, '')),
        theirs.ran,
      );
      assert.equal(ours.status === 'ok', theirs.ok);
      seen.ran += theirs.ran.length;
      seen.stopped += theirs.ok ? 0 : 1;
    }),
    { numRuns: 150 },
  );
  // A comparison of empty folders would always succeed.
  assert.ok(seen.ran > 100 && seen.stopped > 10, JSON.stringify(seen));
});
