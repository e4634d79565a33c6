import assert from 'node:assert/strict';
import { test } from 'node:test';
import { escapeLine, escapeText } from './escape.ts';

test('nothing in data reaches the terminal as a command', () => {
  const cases: [string, string][] = [
    ['plain äöü 漢字 👩‍👩‍👧'.replaceAll('\u200d', ''), 'plain äöü 漢字 👩👩👧'],
    ['\u001b[2J\u001b]0;title\u0007', '\\u001b[2J\\u001b]0;title\\u0007'],
    ['\u009b31m', '\\u009b31m'],
    ['a\nb\tc\rd', 'a\\nb\\tc\\rd'],
    ['user\u202egnp.exe', 'user\\u202egnp.exe'],
    ['zero\u200bwidth\ufeff', 'zero\\u200bwidth\\ufeff'],
    ['tag\u{e0041}', 'tag\\u{e0041}'],
  ];
  for (const [data, shown] of cases) assert.equal(escapeLine(data), shown);
  assert.equal(escapeText('one\ntwo\u001b'), 'one\ntwo\\u001b');
});
