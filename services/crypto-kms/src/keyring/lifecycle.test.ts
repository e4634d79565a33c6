import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { tempDir } from '../../../../test/support/temp.ts';
import { openKeyring } from './keyring.ts';
import { toRootKey } from './root-key.ts';
import { USES_PER_BYTE } from './uses.ts';

const root = toRootKey(createSecretKey(randomBytes(32)));
const UNDO_MS = 60_000;

/** A keyring with a retired version 1 and an active version 2. */
async function prepare() {
  const dir = await tempDir('lifecycle');
  const clock = { ms: 1_700_000_000_000 };
  const open = () =>
    openKeyring({ stateDir: dir.path, name: 'pillars', root, prepublishMs: 1000, nowMs: () => clock.ms });
  const ring = await open();
  await ring.rotate();
  clock.ms += 1000;
  return {
    ...{ clock, ring, open, folder: path.join(dir.path, 'keyring') },
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  };
}

type Ring = Awaited<ReturnType<typeof openKeyring>>;
const statesOf = (ring: Ring) => ring.versions().map(({ version, state }) => `${version} ${state}`);
const opens = (ring: Ring) => [1, 2].filter((version) => ring.find(`pillars-v${version}`) !== undefined);
const refused = (work: Promise<unknown>, code: string, message: RegExp) =>
  assert.rejects(work, { code, message });

test('versions below the least one open nothing, until it is lowered', async () => {
  await using world = await prepare();
  const replica = await world.open();
  await world.ring.setMinVersion(2);
  assert.deepEqual(opens(world.ring), [2]);
  await replica.refresh();
  assert.deepEqual([opens(replica), replica.minVersion()], [[2], 2]);
  assert.deepEqual(opens(await world.open()), [2]);
  await replica.setMinVersion(1);
  await world.ring.refresh();
  assert.deepEqual(opens(world.ring), [1, 2]);
});

test('a version that seals or will seal is never barred or given up, nor one there is not', async () => {
  await using world = await prepare();
  await world.ring.rotate();
  await refused(world.ring.setMinVersion(3), 'bad_request', /version 2 seals/u);
  await refused(world.ring.setMinVersion(9), 'not_found', /no such version/u);
  for (const [version, why] of [
    [1, /may still open/u],
    [2, /is active/u],
    [3, /is prepublished/u],
  ] as const)
    await refused(world.ring.destroy(version, UNDO_MS), 'conflict', why);
  await refused(world.ring.destroy(4, UNDO_MS), 'not_found', /no such version/u);
  await refused(world.ring.undestroy(1), 'conflict', /not destroyed/u);
  assert.deepEqual(
    [statesOf(world.ring), opens(world.ring)],
    [
      ['1 retired', '2 active', '3 prepublished'],
      [1, 2],
    ],
  );
});

test('a destroyed version can be taken back for a while, and is gone after it', async () => {
  await using world = await prepare();
  const { ring, clock } = world;
  const file = path.join(world.folder, 'pillars', 'v000001.json');
  await ring.setMinVersion(2);
  const ended = await ring.destroy(1, UNDO_MS);
  assert.deepEqual([ended.state, ended.erase_after_ms], ['destroyed', clock.ms + UNDO_MS]);
  await refused(ring.destroy(1, UNDO_MS), 'conflict', /is destroyed/u);
  // Lowering the least version does not bring it back.
  await ring.setMinVersion(1);
  assert.deepEqual(opens(ring), [2]);
  clock.ms += UNDO_MS - 1;
  assert.deepEqual(await ring.eraseDue(), []);
  await ring.undestroy(1);
  assert.deepEqual(
    [statesOf(await world.open()), opens(ring)],
    [
      ['1 retired', '2 active'],
      [1, 2],
    ],
  );

  await ring.setMinVersion(2);
  await ring.destroy(1, UNDO_MS);
  clock.ms += UNDO_MS;
  await refused(ring.undestroy(1), 'conflict', /is gone/u);
  const replica = await world.open();
  assert.deepEqual(
    (await ring.eraseDue()).map(({ kid }) => kid),
    ['pillars-v1'],
  );
  assert.match(await readFile(file, 'utf8'), /"sealed":null/u);
  await replica.refresh();
  assert.deepEqual(await replica.eraseDue(), []);
  await refused(replica.undestroy(1), 'conflict', /is gone/u);
  assert.deepEqual(statesOf(await world.open()), ['1 destroyed', '2 active']);
});

test('what was decided but not done when a process was killed is done by the next', async () => {
  await using world = await prepare();
  const { ring, clock } = world;
  const file = path.join(world.folder, 'pillars', 'v000001.json');
  await ring.setMinVersion(2);
  await ring.destroy(1, 0);
  const before = await readFile(file, 'utf8');
  await ring.eraseDue();
  // As it is when the process dies between its decision and the file.
  await writeFile(file, before);
  clock.ms += 1;
  const next = await world.open();
  assert.deepEqual(opens(next), [2]);
  assert.equal((await next.eraseDue()).length, 1);
  assert.match(await readFile(file, 'utf8'), /"sealed":null/u);
});

test('of replicas that decide at once one does', async () => {
  await using world = await prepare();
  const rings = [world.ring, await world.open(), await world.open()];
  const results = await Promise.allSettled(rings.map((ring) => ring.setMinVersion(2)));
  assert.ok(results.some(({ status }) => status === 'fulfilled'));
  for (const result of results)
    if (result.status === 'rejected') assert.equal(result.reason.code, 'conflict');
  for (const ring of rings) await ring.refresh();
  assert.deepEqual(
    rings.map((ring) => ring.minVersion()),
    [2, 2, 2],
  );
  await rings[0]?.destroy(1, UNDO_MS);
  world.clock.ms += UNDO_MS - 1;
  const [back, again] = await Promise.allSettled([rings[0]?.undestroy(1), rings[1]?.undestroy(1)]);
  assert.equal([back, again].filter((one) => one?.status === 'fulfilled').length, 1);
});

test('a decision that is missing or changed is named, and keeps the service from starting', async () => {
  await using world = await prepare();
  await world.ring.setMinVersion(2);
  const file = path.join(world.folder, 'pillars.changes', 'c000001.json');
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace('"number":1', '"number":2'));
  await assert.rejects(world.open(), { code: 'misconfigured', message: /c000001/u });
});

test('who has not read the keyring for a while reads it before it seals', async () => {
  await using world = await prepare();
  const stopped = await world.open();
  await world.ring.rotate();
  world.clock.ms += 1000;
  assert.equal(stopped.active().kid, 'pillars-v2');
  await stopped.prepare(1);
  assert.equal(stopped.active().kid, 'pillars-v3');
});

test('encryptions are counted over all replicas, and never too few', async () => {
  await using world = await prepare();
  const replica = await world.open();
  const counted = () => world.ring.versions().map(({ encryptions }) => encryptions / USES_PER_BYTE);
  assert.deepEqual(counted(), [0, 0]);
  await world.ring.prepare(10);
  await world.ring.prepare(USES_PER_BYTE - 10);
  assert.deepEqual(counted(), [0, 1]);
  await world.ring.prepare(1);
  await Promise.all(Array.from({ length: 4 }, () => replica.prepare(USES_PER_BYTE / 2)));
  assert.deepEqual(counted(), [0, 4]);
  await (await world.open()).prepare(1);
  assert.deepEqual(counted(), [0, 5]);
});
