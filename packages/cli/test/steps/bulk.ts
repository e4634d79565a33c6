import assert from 'node:assert/strict';
import { readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Memory, Step } from '../support.ts';

const YES = [{ expect: 'Type "yes"', send: 'yes\r' }];
const yesIn = ({ mode }: Memory) => (mode === 'pipe' ? ['--yes'] : []);
const file = (m: Memory) => path.join(m.dir, 'estate.yaml');

/** The estate in and out of a file, and found again. */
export const BULK_STEPS: readonly Step[] = [
  {
    command: 'export',
    args: (m) => ['--output-file', file(m)],
    // On a terminal it says how much there is, and takes that back.
    shows: /^(?:\r[\d.]+ MiB)*\r?$/,
    json: 'none',
    async after(m) {
      assert.equal((await stat(file(m))).mode & 0o777, 0o600);
      assert.match(await readFile(file(m), 'utf8'), /kind: estate[\s\S]*hello/);
      await writeFile(file(m), (await readFile(file(m), 'utf8')).replaceAll('hello', `hello ${m.mode}`));
    },
  },
  { command: 'export', args: () => ['--secrets', 'omit'], shows: /kind: pillar/, reads: true, json: 'none' },
  {
    command: 'import',
    args: (m) => [file(m), '--dry-run'],
    shows: /update +pillar[\s\S]*pillars: 0 new, 1 changed/,
    reads: true,
  },
  { command: 'import', args: (m) => [file(m), ...yesIn(m)], types: YES, shows: /done, clock \d+/ },
  {
    command: 'pillar search',
    args: (m) => ['--value', `hello ${m.mode}`, '--since', '1h'],
    shows: /PID[\s\S]*motd/,
    reads: true,
  },
];
