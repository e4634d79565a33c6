import assert from 'node:assert/strict';
import { glob, readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';

const checkout = path.join(import.meta.dirname, '..', '..');
const text = await readFile(path.join(checkout, 'SECURITY.md'), 'utf8');

/** Said of what only the operating system, or nothing at all, keeps. */
const UNTESTED = 'no test:';

function rowsBelow(heading: string): string[][] {
  const section = text.split(`## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('| '));
  return lines.slice(1).map((line) => line.split(' | ').map((cell) => cell.replace(/^\||\|$/gu, '').trim()));
}

const testFiles = await Array.fromAsync(
  glob('{services,packages,test}/**/*.test.ts', {
    cwd: checkout,
    exclude: (name) => name === 'node_modules',
  }),
);

test('every claim of what a stolen part reaches, or does not, names a test', () => {
  const rows = rowsBelow('What a stolen part reaches').filter(([what = '']) => !/^-+$/u.test(what));
  assert.ok(rows.length > 25, String(rows.length));
  for (const [what, ...claims] of rows) {
    assert.equal(claims.length, 2, what);
    for (const claim of claims)
      assert.ok(claim === '' || /\.test\.ts`/u.test(claim) || claim.includes(UNTESTED), `${what}: ${claim}`);
  }
});

test('every test that is named there is one', () => {
  const named = [...text.matchAll(/`([\w./-]+\.test\.ts)`/gu)].map(([, name = '']) => name);
  assert.ok(named.length > 30, String(named.length));
  for (const name of named)
    assert.ok(
      testFiles.some((file) => file === name || file.endsWith(`/${name}`)),
      name,
    );
});

test('every test of a stolen part is named there', () => {
  const stolen = testFiles.map((file) => path.basename(file)).filter((name) => name.startsWith('stolen-'));
  assert.ok(stolen.length >= 5, String(stolen.length));
  for (const name of stolen) assert.ok(text.includes(name), name);
});
