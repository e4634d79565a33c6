import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { buildAsyncApi } from './asyncapi.ts';

test('asyncapi.generated.json says what the contracts say today', () => {
  const file = new URL('../asyncapi.generated.json', import.meta.url);
  const now = JSON.parse(JSON.stringify(buildAsyncApi()));
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), now, 'run: node scripts/write-asyncapi.ts');
});
