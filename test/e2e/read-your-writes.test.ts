import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { BridgeClient } from '@colonnade/embedded';
import { type Value, valuesEqual } from '@colonnade/value';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';

const PAIRS = 1000;
const root = { tgt_type: 'root' };

describe('a merge that starts after a write was acknowledged returns that write, on every merger', () => {
  let stack: TestStack;
  let bridge: BridgeClient;
  let stale = 0;

  before(async () => {
    stack = await stackForTests({ mergers: 2 });
    bridge = stack.bridge(await stack.addMaster('m1'));
  });
  after(async () => stack[Symbol.asyncDispose]());

  async function merged(minionId: string): Promise<{ [name: string]: Value }> {
    const reply = await bridge.ask({ minionId, pillarenv: 'auto', ttlMs: 5000 });
    assert.ok(reply.ok, JSON.stringify(reply.ok ? '' : reply.error));
    return reply.pillar as { [name: string]: Value };
  }

  /** The mergers take requests in turn as they are free, so several at once reach both. */
  async function everyMerger(isFresh: (pillar: { [name: string]: Value }) => boolean): Promise<void> {
    const pillars = await Promise.all([merged('web'), merged('web'), merged('web')]);
    stale += pillars.filter((pillar) => !isFresh(pillar)).length;
  }

  test(`${PAIRS} writes of all kinds, each followed by merges`, async () => {
    const write = writeEstate(stack.api);
    const collections = ['c0', 'c1', 'c2', 'c3'];
    for (const id of collections) {
      await write.collection(id);
      await write.pillar({ tgt_type: 'collection', collection_id: id }, 'from', id);
      await write.pillar({ tgt_type: 'collection', collection_id: id }, `only_${id}`, true);
    }
    await write.minion('m1', 'web', ['c0']);
    const counter = await write.pillar(root, 'counter', -1n);
    const parents = new Map<string, string | null>(collections.map((id) => [id, null]));
    let member = 'c0';
    for (let i = 0; i < PAIRS; i++) {
      const step = i % 10;
      if (step < 6) {
        const value = BigInt(i);
        await write.update(counter.pid, value);
        await everyMerger((p) => p.counter === value);
      } else if (step === 6) {
        member = collections[Math.floor(i / 10) % collections.length] as string;
        await write.minion('m1', 'web', [member]);
        await everyMerger((p) => p.from === member);
      } else if (step === 7) {
        const moved = member;
        const target = collections.find((c) => c !== moved && parents.get(c) === null) as string;
        parents.set(moved, target);
        await write.moveCollection(moved, target);
        await everyMerger((p) => p[`only_${target}`] === true);
        await write.moveCollection(moved, null);
        parents.set(moved, null);
        await everyMerger((p) => p[`only_${target}`] === undefined);
      } else if (step === 8) {
        const made = await write.pillar(
          { tgt_type: 'minion', master: 'm1', minion_id: 'web' },
          'own',
          { n: BigInt(i) },
          true,
        );
        await everyMerger((p) => valuesEqual(p.own ?? null, { n: BigInt(i) }));
        await write.remove(made.pid);
      } else {
        await everyMerger((p) => p.own === undefined);
      }
    }
    assert.equal(stale, 0);
    for (const merger of stack.stack.mergers) {
      const metrics = await (await fetch(`${merger.url}/metrics`)).text();
      const answered = /^colonnade_merger_requests_total\{[^}]*"ok"[^}]*\} (\d+)/mu.exec(metrics);
      assert.ok(Number(answered?.[1]) > PAIRS / 2, `one merger answered only ${answered?.[1]}`);
    }
  });
});
