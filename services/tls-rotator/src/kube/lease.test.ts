import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import { waitFor } from '../../../../test/support/wait-for.ts';
import type { KubeClient } from './client.ts';
import { startLease } from './lease.ts';

/** An API server with one Lease, whose answers can be held back. */
function createSlowServer() {
  let lease: { metadata: { resourceVersion: string }; spec: Record<string, unknown> } | undefined;
  let held: Promise<void> | undefined;
  let version = 0;
  const client = {
    async request(
      method: string,
      _path: string,
      { body }: { body?: { spec: Record<string, unknown> } } = {},
    ) {
      await held;
      if (method === 'GET' && lease === undefined) throw new ColonnadeError('not_found', 'no Lease');
      if (body !== undefined) {
        version += 1;
        lease = { metadata: { resourceVersion: String(version) }, spec: { ...lease?.spec, ...body.spec } };
      }
      return lease;
    },
  } as unknown as KubeClient;
  return {
    client,
    hold(): Disposable {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return {
        [Symbol.dispose]: () => {
          held = undefined;
          resolve();
        },
      };
    },
  };
}

test('a leadership that lapsed while an answer was slow is told as lost and gained again', async () => {
  const server = createSlowServer();
  const told: string[] = [];
  await using leadership = startLease(server.client, {
    ...{ namespace: 'n', name: 'l', identity: 'me', durationMs: 200 },
    onGained: () => void told.push('gained'),
    onLost: () => void told.push('lost'),
    onError: ({ code }) => void told.push(code),
  });
  await waitFor('leadership', () => told.includes('gained'));
  {
    using _ = server.hold();
    await waitFor('it to lapse', () => !leadership.isLeader());
  }
  await waitFor('it to come back', () => leadership.isLeader() && told.at(-1) === 'gained');
  // Whoever was turned away meanwhile is looked at again by what `gained` does.
  assert.deepEqual(told.slice(0, 3), ['gained', 'lost', 'gained']);
});
