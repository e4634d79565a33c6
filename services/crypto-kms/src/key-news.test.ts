import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newsOf, type ToldKey } from './key-news.ts';
import type { KeyVersion } from './keyring/keyring.ts';

const version = (number: number, changes: Partial<KeyVersion> = {}): KeyVersion => ({
  ...{
    version: number,
    kid: `pillars-v${number}`,
    created_at_ms: number * 100,
    active_from_ms: number * 100,
  },
  ...{ state: 'retired', destroyed_at_ms: null, erase_after_ms: null, encryptions: 0 },
  ...changes,
});
const ringOf = (versions: readonly KeyVersion[], minVersion = 1) => ({
  name: 'pillars',
  versions: () => versions,
  minVersion: () => minVersion,
});
const look = (told: ToldKey | undefined, versions: readonly KeyVersion[], minVersion = 1, nowMs = 1000) => {
  const found = newsOf(told, ringOf(versions, minVersion), nowMs);
  return { told: found.told, ids: found.news.map(({ id }) => id), news: found.news };
};
const typesOf = ({ news }: ReturnType<typeof look>) => news.map(({ type }) => type.split('.')[2]);

const start = look(undefined, [version(1, { state: 'active' })]);

test('of a key nothing was told of there is no news', () => {
  assert.deepEqual(start.ids, []);
  assert.deepEqual(look(start.told, [version(1, { state: 'active' })]).ids, []);
});

test('what was missed is told in its order, to the present', () => {
  const now = look(start.told, [version(1), version(2), version(3, { state: 'active' })]);
  assert.deepEqual(
    now.news.map(({ type, data }) => `${type.split('.')[2]} ${(data as { version: bigint }).version}`),
    ['retired 1', 'rotated 2', 'activated 2', 'retired 2', 'rotated 3', 'activated 3'],
  );
  assert.deepEqual(look(now.told, [version(1), version(2), version(3, { state: 'active' })]).ids, []);
});

test('two that look at once give the same ids; a later destruction of the same version has another', () => {
  const active = version(2, { state: 'active' });
  const retired = look(start.told, [version(1), active]);
  const gone = (at: number) => version(1, { state: 'destroyed', destroyed_at_ms: at, erase_after_ms: 5000 });
  const destroyed = look(retired.told, [gone(300), active], 2);
  assert.deepEqual(typesOf(destroyed), ['destroyed', 'barred']);
  assert.deepEqual(look(retired.told, [gone(300), active], 2).ids, destroyed.ids);
  const back = look(destroyed.told, [version(1), active], 2);
  assert.deepEqual(typesOf(back), ['undestroyed']);
  const again = look(back.told, [gone(400), active], 2);
  assert.deepEqual(typesOf(again), ['destroyed']);
  assert.notEqual(again.ids[0], destroyed.ids[0]);
  assert.deepEqual(typesOf(look(destroyed.told, [gone(400), active], 2)), ['undestroyed', 'destroyed']);
  const erased = look(again.told, [gone(400), active], 2, 5000);
  assert.deepEqual(typesOf(erased), ['erased']);
  assert.deepEqual(look(erased.told, [gone(400), active], 2, 6000).ids, []);
});

test('the least version, raised, lowered and raised again: three ids', () => {
  const versions = [version(1), version(2, { state: 'active' })];
  const first = look(undefined, versions);
  const up = look(first.told, versions, 2);
  const down = look(up.told, versions, 1);
  const upAgain = look(down.told, versions, 2);
  assert.deepEqual([up, down, upAgain].flatMap(typesOf), ['barred', 'unbarred', 'barred']);
  assert.equal(new Set([up, down, upAgain].flatMap(({ ids }) => ids)).size, 3);
});

test('a clock that is behind unsays nothing', () => {
  const ahead = look(start.told, [version(1), version(2, { state: 'active' })]);
  const behind = look(ahead.told, [version(1, { state: 'active' }), version(2, { state: 'prepublished' })]);
  assert.deepEqual(behind.ids, []);
  assert.deepEqual(look(behind.told, [version(1), version(2, { state: 'active' })]).ids, []);
});
