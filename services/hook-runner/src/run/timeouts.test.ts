import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HEAD_BYTES, readStatedTimeouts, type StatedTimeouts } from './timeouts.ts';

const read = (text: string) => readStatedTimeouts(Buffer.from(text).subarray(0, HEAD_BYTES));
const none: StatedTimeouts = { faults: [] };
/** A comment line of so many characters, its end included. */
const filler = (length: number, character = 'x') => `# ${character.repeat(length - 3)}\n`;

const heads: readonly (readonly [string, string, StatedTimeouts])[] = [
  ['nothing', '#!/bin/sh\nexit 0\n', none],
  ['an empty file', '', none],
  [
    'both, in comments',
    '#!/bin/sh\n# HOOK_WARN_TIMEOUT = 5 s\n# HOOK_KILL_TIMEOUT=10 minutes\n',
    { warnMs: 5000, killMs: 600_000, faults: [] },
  ],
  ['any comment characters', '//;-- HOOK_KILL_TIMEOUT = 3h', { killMs: 10_800_000, faults: [] }],
  ['a line of its own', 'HOOK_WARN_TIMEOUT=1500 micros\n', { warnMs: 1.5, faults: [] }],
  [
    'lines that end in CR LF',
    '#!/bin/sh\r\n# HOOK_WARN_TIMEOUT = 2 seconds\r\n# HOOK_KILL_TIMEOUT = 4 seconds\r\n',
    { warnMs: 2000, killMs: 4000, faults: [] },
  ],
  ['a byte order mark', '\ufeff# HOOK_WARN_TIMEOUT = 1s\n', { warnMs: 1000, faults: [] }],
  [
    'the first of several',
    '# HOOK_WARN_TIMEOUT = 1s\n# HOOK_WARN_TIMEOUT = 2s\n',
    { warnMs: 1000, faults: [] },
  ],
  [
    'one that cannot be read before one that can',
    '# HOOK_WARN_TIMEOUT = soon\n# HOOK_WARN_TIMEOUT = 2s\n',
    { warnMs: 2000, faults: ['HOOK_WARN_TIMEOUT is not a length and a unit'] },
  ],
  [
    'a comment behind it',
    '# HOOK_KILL_TIMEOUT = 2s # two seconds\n',
    { faults: ['HOOK_KILL_TIMEOUT is not a length and a unit'] },
  ],
  ['no value', '# HOOK_KILL_TIMEOUT =\n', { faults: ['HOOK_KILL_TIMEOUT is not a length and a unit'] }],
  ['no sign', '# HOOK_KILL_TIMEOUT 5s\n', none],
  [
    'bytes that are no text',
    '\u007fELF\u0000\u0001\n# HOOK_KILL_TIMEOUT = 5s\n',
    { killMs: 5000, faults: [] },
  ],
  ['the last line within', `${filler(978)}#HOOK_WARN_TIMEOUT=7s\n`, { warnMs: 7000, faults: [] }],
  [
    'characters, not bytes: wide ones before it',
    `${filler(970, 'é')}#HOOK_WARN_TIMEOUT=7s\n`,
    { warnMs: 7000, faults: [] },
  ],
  ['characters of four bytes', `${filler(970, '𝄞')}#HOOK_WARN_TIMEOUT=7s\n`, { warnMs: 7000, faults: [] }],
  ['a line that begins within and ends beyond', `${filler(975)}# HOOK_WARN_TIMEOUT = 10 minutes\n`, none],
  ['a line whose cut would be another length', `${filler(978)}#HOOK_WARN_TIMEOUT=10minutes\n`, none],
  ['a line that ends exactly there', `${filler(979)}#HOOK_WARN_TIMEOUT=7s\r\n`, { warnMs: 7000, faults: [] }],
  ['a file that ends exactly there', `${filler(979)}#HOOK_WARN_TIMEOUT=7s`, { warnMs: 7000, faults: [] }],
  ['a line beyond', `${filler(1000)}# HOOK_WARN_TIMEOUT = 5s\n`, none],
];

for (const [what, text, wanted] of heads) {
  test(`the head of a hook: ${what}`, () => assert.deepEqual(read(text), wanted));
}
