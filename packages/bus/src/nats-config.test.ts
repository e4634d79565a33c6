import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { renderProductionNatsConfig } from './nats-config.ts';

test('infra/nats/colonnade.conf is what the contracts say today', () => {
  const file = new URL('../../../infra/nats/colonnade.conf', import.meta.url);
  assert.equal(
    readFileSync(file, 'utf8'),
    renderProductionNatsConfig(),
    'run: node scripts/write-nats-config.ts',
  );
});
