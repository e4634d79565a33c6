import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runTool } from '../../test/pki.ts';
import { parseLook, quote } from './helper.ts';

test('a quoted word is one word to a shell, whatever stands in it', () => {
  for (const word of ['plain', "it's", '$(id)', '`id`', 'a b', '"x"', '\\', 'a\nb', '', "'", '*', '; exit 3'])
    assert.equal(runTool('/bin/sh', '-c', `printf %s ${quote(word)}`), word);
});

test('what look prints is read; what is cut off is refused', () => {
  const journal = { version: 1, phase: 'forward', target: 't', previous: 'none', oldProcesses: [], parks: 0 };
  const text = `ca abc 1500\nmanifest parked 20\nprocess boot:1:2 300\narmed\njournal ${Buffer.from(JSON.stringify(journal)).toString('base64')}\nend\n`;
  assert.deepEqual(parseLook(text), {
    ca: { hash: 'abc', ageMs: 1500 },
    keyHash: undefined,
    manifest: { where: 'parked', ageMs: 20 },
    processes: [{ id: 'boot:1:2', ageMs: 300 }],
    armed: true,
    journal,
  });
  for (const bad of ['', text.slice(0, -5), 'end\n'])
    assert.throws(() => parseLook(bad), { code: 'unprocessable' });
});
