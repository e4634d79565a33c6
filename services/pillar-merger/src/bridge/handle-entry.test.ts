import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BRIDGE_EVENT, encodeText, zBridgeRequest } from '@colonnade/contracts';
import type { StoredReply } from './functions.ts';
import { type EntryOutcome, handleEntry } from './handle-entry.ts';

const NOW_MS = 1_700_000_000_000;
const DAY_MS = 86_400_000;

function entryAt(startMs: number, ttlMs: number) {
  const request = {
    v: 1,
    event: BRIDGE_EVENT,
    master: 'm1',
    minion_id: 'web',
    pillarenv: 'base',
    token: 't',
    ttl_ms: ttlMs,
  } as const;
  return {
    master: 'm1',
    id: `${startMs}-0`,
    data: Buffer.from(encodeText(zBridgeRequest, request)),
    deliveries: 1,
  };
}

async function handle(
  startMs: number,
  ttlMs: number,
): Promise<{ replies: StoredReply[]; outcomes: EntryOutcome[] }> {
  const replies: StoredReply[] = [];
  const outcomes: EntryOutcome[] = [];
  await handleEntry(entryAt(startMs, ttlMs), {
    // A neighbour that never answers.
    answer: () => new Promise(() => {}),
    recordRefusal: async () => {},
    storeReply: async (reply) => {
      replies.push(reply);
      return true;
    },
    nowMs: () => NOW_MS,
    onOutcome: (outcome) => outcomes.push(outcome),
  });
  return { replies, outcomes };
}

for (const [what, startMs] of [
  ['now', NOW_MS],
  ['an hour ahead, as after a clock that was set back', NOW_MS + DAY_MS / 24],
  ['weeks ahead, as a master may choose it', NOW_MS + 40 * DAY_MS],
] as const) {
  test(`an entry of ${what} holds its place no longer than the time it asked for`, {
    timeout: 5000,
  }, async () => {
    const { replies, outcomes } = await handle(startMs, 200);
    assert.equal(replies.length, 1);
    assert.match(replies[0]?.text ?? '', /"code":"unavailable"/u);
    assert.equal(outcomes[0]?.code, 'unavailable');
  });
}

test('an entry whose time is over is answered so at once', async () => {
  const { replies } = await handle(NOW_MS - 300, 200);
  assert.match(replies[0]?.text ?? '', /"code":"expired"/u);
});
