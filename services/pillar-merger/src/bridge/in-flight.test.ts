import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Entry } from './entry.ts';
import { createInFlight } from './in-flight.ts';

const entry = (id: string, deliveries = 1): Entry => ({ master: 'm1', id, data: undefined, deliveries });

/** Handles an entry until it is told to end. */
function createHandler() {
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const handle = async ({ id }: Entry): Promise<void> => {
    started.push(id);
    const { promise, resolve } = Promise.withResolvers<void>();
    ends.set(id, resolve);
    await promise;
  };
  return { started, handle, end: (id: string) => ends.get(id)?.() };
}

test('at most the limit is worked on; what was delivered before goes first; twice the limit may be held', async () => {
  const { started, handle, end } = createHandler();
  const inFlight = createInFlight(2, handle);
  for (const id of ['1', '2', '3']) inFlight.add(entry(id));
  inFlight.add(entry('1'));
  assert.deepEqual([started, inFlight.free(), inFlight.roomForClaims()], [['1', '2'], 0, 1]);
  inFlight.add(entry('0', 2));
  assert.equal(inFlight.roomForClaims(), 0);
  end('1');
  while (started.length < 3) await new Promise(setImmediate);
  assert.deepEqual(started, ['1', '2', '0']);
  assert.deepEqual(inFlight.byMaster(), new Map([['m1', ['2', '3', '0']]]));
  const free = inFlight.whenFree();
  for (const id of ['2', '0']) end(id);
  await free;
  while (started.length < 4) await new Promise(setImmediate);
  end('3');
  await inFlight.whenIdle();
  assert.equal(inFlight.size, 0);
});

test('of several masters none holds more than its share; a single one may hold all', async () => {
  const { handle, end } = createHandler();
  const inFlight = createInFlight(4, handle);
  for (const id of ['1', '2', '3']) inFlight.add(entry(id));
  assert.deepEqual(
    [inFlight.hasRoom('m1', 2), inFlight.hasRoom('m1', 1), inFlight.hasRoom('m2', 2)],
    [false, true, true],
  );
  assert.equal(inFlight.fullMs(), 0);
  inFlight.add({ ...entry('4'), master: 'm2' });
  assert.equal(inFlight.hasRoom('m2', 2), false);
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.ok(inFlight.fullMs() > 0);
  const freed = inFlight.whenFreed();
  end('1');
  await freed;
  assert.deepEqual([inFlight.fullMs(), inFlight.hasRoom('m1', 2)], [0, true]);
});
