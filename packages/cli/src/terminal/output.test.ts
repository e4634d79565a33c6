import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';

test('in two columns neither a name nor a value reaches the terminal as a command', async () => {
  const module = JSON.stringify(new URL('./output.ts', import.meta.url).href);
  const rows = JSON.stringify([
    ['id\u001b[2J\nnot a row', 'pid'],
    ['fit', '1\u001b[31m'],
  ]);
  const program = `const { createOutput } = await import(${module}); await createOutput().fields(${rows});`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  assert.deepEqual(stdout.trimEnd().split('\n'), [
    'id\\u001b[2J\\nnot a row  pid',
    `${'fit'.padEnd(22)}  1\\u001b[31m`,
  ]);
});
