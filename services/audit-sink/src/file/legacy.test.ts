import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { legacyLine } from './legacy.ts';

const fixture = (name: string) =>
  readFileSync(new URL(`../../test/fixtures/${name}`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n');

test('legacy lines are what EventString of k8s.io/apiserver 0.37.2 makes of the same events, in UTC', () => {
  const lines = fixture('legacy-events.jsonl').map((line) => legacyLine(JSON.parse(line)));
  assert.deepEqual(lines, fixture('legacy-lines.txt'));
});
