import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { tempDir } from '../../../../test/support/temp.ts';
import { type KeyringOptions, openKeyring } from './keyring.ts';
import { toRootKey } from './root-key.ts';

const newRoot = () => toRootKey(createSecretKey(randomBytes(32)));
const root = newRoot();
const YEAR_MS = 365 * 86_400_000;

async function prepare() {
  const dir = await tempDir('keyring');
  const clock = { ms: 1_700_000_000_000 };
  const options = (more: Partial<KeyringOptions> = {}): KeyringOptions => ({
    ...{ stateDir: dir.path, name: 'pillars', root, prepublishMs: 1000, nowMs: () => clock.ms },
    ...more,
  });
  return {
    clock,
    folder: path.join(dir.path, 'keyring', 'pillars'),
    open: (more?: Partial<KeyringOptions>) => openKeyring(options(more)),
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  };
}

const states = (ring: Awaited<ReturnType<typeof openKeyring>>) =>
  ring.versions().map(({ kid, state }) => `${kid} ${state}`);

test('the first start makes version one, and a later one finds it', async () => {
  await using world = await prepare();
  const ring = await world.open();
  assert.deepEqual(states(ring), ['pillars-v1 active']);
  const again = await world.open();
  assert.ok(again.active().key.equals(ring.active().key));
  const [file = ''] = await readdir(world.folder);
  const text = await readFile(path.join(world.folder, file), 'utf8');
  assert.ok(!text.includes(ring.active().key.export().toString('base64')));
});

test('replicas that start at once end with one key', async () => {
  await using world = await prepare();
  const rings = await Promise.all(Array.from({ length: 8 }, () => world.open()));
  const [first] = rings;
  for (const ring of rings) assert.ok(ring.active().key.equals(first?.active().key ?? assert.fail()));
});

test('a KEK that is configured is version one, under its own kid', async () => {
  await using world = await prepare();
  const first = { kid: 'core-kek-v1', key: createSecretKey(randomBytes(32)) };
  const ring = await world.open({ first });
  assert.deepEqual(states(ring), ['core-kek-v1 active']);
  await ring.rotate();
  world.clock.ms += 1000;
  assert.deepEqual(states(ring), ['core-kek-v1 retired', 'pillars-v2 active']);
  assert.ok((await world.open()).find('core-kek-v1')?.key.equals(first.key));
  await world.open({ first });
  const another = { kid: 'core-kek-v1', key: createSecretKey(randomBytes(32)) };
  await assert.rejects(world.open({ first: another }), { code: 'misconfigured', message: /another one/u });
  await assert.rejects(world.open({ first: { ...first, kid: 'late' } }), {
    code: 'misconfigured',
    message: /not in the keyring/u,
  });
});

test('a new version is known before it seals, and what it replaced still opens', async () => {
  await using world = await prepare();
  const ring = await world.open();
  const replica = await world.open();
  const made = await ring.rotate();
  assert.equal(made.state, 'prepublished');
  assert.equal(ring.active().kid, 'pillars-v1');
  assert.equal(replica.find('pillars-v2'), undefined);
  assert.equal(await replica.refresh(), true);
  assert.equal(await replica.refresh(), false);
  world.clock.ms += 999;
  assert.equal(replica.active().kid, 'pillars-v1');
  world.clock.ms += 1;
  assert.deepEqual(states(replica), ['pillars-v1 retired', 'pillars-v2 active']);
  assert.ok(replica.active().key.equals(ring.active().key));
  assert.ok(replica.find('pillars-v1'));
});

test('of several rotations at once one happens', async () => {
  await using world = await prepare();
  const rings = await Promise.all([world.open(), world.open(), world.open()]);
  const results = await Promise.allSettled(rings.map((ring) => ring.rotate()));
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
  await assert.rejects(rings[0]?.rotate() ?? assert.fail(), { code: 'conflict' });
  assert.equal((await world.open()).versions().length, 2);
});

test('another root key opens nothing, and changes nothing', async () => {
  await using world = await prepare();
  const ring = await world.open();
  await assert.rejects(world.open({ root: newRoot() }), { code: 'misconfigured', message: /root key/u });
  assert.ok((await world.open()).active().key.equals(ring.active().key));
});

test('a change of the root key seals the keys anew, and leaves them what they are', async () => {
  await using world = await prepare();
  const ring = await world.open();
  await ring.rotate();
  const next = newRoot();
  const moved = await world.open({ root: next, oldRoot: root });
  assert.ok(moved.find('pillars-v1')?.key.equals(ring.find('pillars-v1')?.key ?? assert.fail()));
  await assert.rejects(world.open(), { code: 'misconfigured' });
  const later = await world.open({ root: next });
  assert.deepEqual(states(later), states(ring));
  // A replica of the old root key goes on with the keys it has, also when it reads the folder again.
  assert.equal(ring.active().kid, 'pillars-v1');
  const key = ring.active().key;
  assert.equal(await ring.refresh(), true);
  assert.equal(await ring.refresh(), false);
  await ring.prepare(1);
  assert.equal(ring.active().key, key);
  world.clock.ms += 1000;
  await ring.prepare(1);
  assert.deepEqual([ring.active().kid, states(ring)], ['pillars-v2', states(later)]);
});

test('a clock that went back keeps no replica from reading what the others have made', async () => {
  await using world = await prepare();
  const ring = await world.open();
  const another = await world.open();
  world.clock.ms += YEAR_MS;
  await ring.prepare(1);
  world.clock.ms -= YEAR_MS;
  await another.rotate();
  world.clock.ms += 1000;
  await ring.prepare(1);
  assert.equal(ring.active().kid, 'pillars-v2');
});

test('a replica of a root key that was replaced makes no version, and seals with none it cannot open', async () => {
  await using world = await prepare();
  const ring = await world.open();
  const next = newRoot();
  const moved = await world.open({ root: next, oldRoot: root });
  await assert.rejects(ring.rotate(), { code: 'conflict', message: /another root key/u });
  assert.deepEqual([ring.ageMs(), moved.ageMs()], [undefined, 0]);
  await moved.rotate();
  world.clock.ms += 1000;
  await assert.rejects(ring.prepare(1), { code: 'misconfigured', message: /root key/u });
  assert.deepEqual(states(await world.open({ root: next })), ['pillars-v1 retired', 'pillars-v2 active']);
});

test('a version of a clock that goes a year ahead is not waited for', async () => {
  await using world = await prepare();
  const ring = await world.open();
  const ahead = await world.open({ nowMs: () => world.clock.ms + YEAR_MS });
  await ahead.rotate();
  await ring.refresh();
  assert.deepEqual([states(ring), ring.ageMs()], [['pillars-v1 active', 'pillars-v2 prepublished'], 0]);
  await ring.rotate();
  // The one made now is waited for, by hand and by age, and is the next one for the other clock too.
  await assert.rejects(ring.rotate(), { code: 'conflict' });
  assert.equal(ring.ageMs(), undefined);
  world.clock.ms += 1000;
  await ahead.refresh();
  assert.deepEqual([ring.active().kid, ahead.active().kid, ring.ageMs()], ['pillars-v3', 'pillars-v3', 0]);
  assert.equal((await ring.rotate()).version, 4);
});

test('a clock that is late waits for the version of the others, and makes none that is used at once', async () => {
  await using world = await prepare();
  const late = await world.open({ nowMs: () => world.clock.ms - 10 * 60_000 });
  world.clock.ms += 20 * 60_000;
  await (await world.open()).rotate();
  await assert.rejects(late.rotate(), { code: 'conflict' });
  assert.equal(late.ageMs(), undefined);
});

for (const [what, spoil] of [
  ['a file of another version', (text: string) => text.replace('"version":1', '"version":2')],
  ['a key under another kid', (text: string) => text.replace('"kid":"pillars-v1"', '"kid":"pillars-v9"')],
  ['half a file', (text: string) => text.slice(0, 60)],
] as const) {
  test(`${what} is refused, by name`, async () => {
    await using world = await prepare();
    await world.open();
    const file = path.join(world.folder, 'v000001.json');
    const text = await readFile(file, 'utf8');
    const spoilt = spoil(text);
    assert.notEqual(spoilt, text);
    await writeFile(file, spoilt);
    await assert.rejects(world.open(), { code: 'misconfigured', message: /pillars/u });
    assert.equal(await readFile(file, 'utf8'), spoilt);
  });
}
