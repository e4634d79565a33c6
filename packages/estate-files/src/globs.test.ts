import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fitsGlob } from './globs.ts';

test('globs are those of the shell, and take no time to speak of', () => {
  const cases: [glob: string, fits: string[], not: string[]][] = [
    ['web-1', ['web-1'], ['web-10', 'aweb-1', '']],
    ['web*', ['web', 'web-1'], ['xweb']],
    ['*pass*', ['pass', 'db_password'], ['pas']],
    ['web-?', ['web-1', 'web-é'], ['web-', 'web-10']],
    ['web-[0-9a]', ['web-3', 'web-a'], ['web-b', 'web--']],
    ['web-[!0-9]', ['web-a'], ['web-3']],
    ['[]a]', [']', 'a'], ['b']],
    ['a[b', ['a[b'], ['ab']],
    ['', [''], ['a']],
    ['a.b', ['a.b'], ['axb']],
  ];
  for (const [glob, fits, not] of cases) {
    for (const text of fits) assert.ok(fitsGlob(glob, text), `${glob} ${text}`);
    for (const text of not) assert.ok(!fitsGlob(glob, text), `${glob} ${text}`);
  }
  assert.ok(!fitsGlob(`${'*a'.repeat(100)}b`, 'a'.repeat(250)));
});
