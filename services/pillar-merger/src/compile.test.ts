import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startCall } from '@colonnade/contracts';
import { compilePillars } from './compile.ts';
import type { EstateCache } from './estate-cache.ts';

test('what is asked for fresh is compiled from the store, and nothing else is', async () => {
  const read: unknown[] = [];
  const estate = {
    async read(_call: unknown, _compute: unknown, options: unknown) {
      read.push(options);
      return { clock: { incarnation: 'i', tick: 1 }, result: [] };
    },
  } as unknown as Pick<EstateCache, 'read'>;
  const minions = [{ master: 'east', minion_id: 'web-1' }];
  for (const more of [{ fresh: true }, { fresh: false }, {}]) {
    await compilePillars({ minions, ...more }, { estate, policy: undefined as never }, startCall(1000));
  }
  assert.deepEqual(read, [{ fresh: true }, { fresh: false }, { fresh: false }]);
});
