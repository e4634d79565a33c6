import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { tempDir } from '../support/temp.ts';
import { waitFor } from '../support/wait-for.ts';

const checkout = path.join(import.meta.dirname, '..', '..');

/** The lines of the README, with the programs of this checkout: `npx .` and `npm start` look for them in the folder they run in. */
async function linesOfReadme(): Promise<string> {
  const readme = await readFile(path.join(checkout, 'README.md'), 'utf8');
  const [, block] = /^## From a terminal\n+```sh\n([\s\S]*?)^```$/mu.exec(readme) ?? [];
  assert.ok(block !== undefined, 'the README has such a block');
  const command = `'${process.execPath}' '${path.join(checkout, 'scripts', 'colonnade.mjs')}'`;
  assert.ok(block.includes('npx . '));
  return block.replaceAll('npx . ', `${command} `);
}

test('what the README says of a terminal runs as written, beside npm start', {
  timeout: 300_000,
}, async () => {
  await using dir = await tempDir('terminal');
  const main = path.join(checkout, 'packages', 'embedded', 'src', 'main.ts');
  const started = spawn(process.execPath, [main], { cwd: dir.path, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => started.once('close', resolve));
  let told = '';
  for (const stream of [started.stdout, started.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      told += text;
    });
  try {
    await waitFor(
      'npm start to be ready',
      () => {
        assert.equal(started.exitCode, null, told);
        return told.includes('Ctrl-C stops everything');
      },
      { limitMs: 120_000 },
    );
    assert.ok(told.includes('. .colonnade/data/cli.env; npx . status'), told);
    const env = { ...process.env, HOME: dir.path, XDG_CONFIG_HOME: dir.path };
    const script = await linesOfReadme();
    const { stdout } = await promisify(execFile)('sh', ['-e', '-c', script], { cwd: dir.path, env });
    assert.match(stdout, /name +greeting[\s\S]*good morning/u);
    assert.match(stdout, /pillar-api +0\.1\.0/u);
  } finally {
    started.kill('SIGTERM');
    await ended;
  }
});
