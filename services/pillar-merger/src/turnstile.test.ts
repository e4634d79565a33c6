import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { startCall } from '@colonnade/contracts';
import { createTurnstile } from './turnstile.ts';

const busyFor = (ms: number) => {
  for (const until = performance.now() + ms; performance.now() < until; );
};

test('pieces of work come one after the other, in order, and a failure holds up nobody', async () => {
  const pass = createTurnstile();
  const seen: string[] = [];
  const piece = (name: string) => async () => {
    seen.push(`${name} begins`);
    await nextTurn();
    if (name === 'b') throw new Error(name);
    seen.push(`${name} ends`);
    return name;
  };
  const ends = await Promise.allSettled(['a', 'b', 'c'].map((name) => pass(startCall(5000), piece(name))));
  assert.deepEqual(
    ends.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.deepEqual(seen, ['a begins', 'a ends', 'b begins', 'c begins', 'c ends']);
});

test('others have their turn between two long pieces, and whoever waited too long is not worked for', async () => {
  const pass = createTurnstile();
  let others = 0;
  let worked = 0;
  const long = async () => {
    worked += 1;
    busyFor(60);
    return others;
  };
  const late = pass(startCall(5000), long);
  const gone = pass(startCall(30), long);
  const second = pass(startCall(5000), long);
  const timer = setInterval(() => {
    others += 1;
  }, 1);
  assert.equal(await late, 0);
  await assert.rejects(gone, { code: 'unavailable' });
  assert.ok((await second) > 0);
  clearInterval(timer);
  assert.equal(worked, 2);
});
