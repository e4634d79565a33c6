import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { cp } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ColonnadeError, encodeTree, zEnc } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import { type DeathOrder, killAtEachStep, runMortal } from '../../../test/support/die-at.ts';
import { type TempDir, tempDir } from '../../../test/support/temp.ts';
import { openValue, sealValue } from '../src/envelope.ts';
import { type Keyring, openKeyring } from '../src/keyring/keyring.ts';
import { toRootKey } from '../src/keyring/root-key.ts';
import { ACTS, type ActName, act, type OPENINGS, UNDO_MS } from './keyring-acts.ts';

const program = new URL('./fixtures/keyring-act.ts', import.meta.url).pathname;
const [ROOT, NEXT_ROOT] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')];
const rootKey = (hex: string) => toRootKey(createSecretKey(Buffer.from(hex, 'hex')));
const AAD = 'root:root:base:db';
const START_MS = 1_700_000_000_000;
/** An act that leaves less than this many changes was not looked at closely enough. */
const FEWEST = 3;

type Name = ActName | (typeof OPENINGS)[number];
type Case = {
  name: Name;
  /** What has happened before it, in turn. */
  given: readonly ActName[];
  /** From the last of that to this one, milliseconds. */
  laterMs?: number;
  /** Versions, their states, and the least one, once it is done. */
  ends: string;
};

const CASES: readonly Case[] = [
  { name: 'first', given: [], ends: '1 active; 1' },
  { name: 'rotate', given: [], ends: '1 retired, 2 active, 3 prepublished; 1' },
  { name: 'claim', given: [], ends: '1 retired, 2 active; 1' },
  { name: 'min-version', given: [], ends: '1 retired, 2 active; 2' },
  { name: 'lower', given: ['min-version'], ends: '1 retired, 2 active; 1' },
  { name: 'destroy', given: ['min-version'], ends: '1 destroyed, 2 active; 2' },
  { name: 'undestroy', given: ['min-version', 'destroy'], ends: '1 retired, 2 active; 2' },
  { name: 'erase', given: ['min-version', 'destroy'], laterMs: UNDO_MS, ends: '1 destroyed, 2 active; 2' },
  { name: 'root-key', given: [], ends: '1 retired, 2 active; 1' },
];

const viewOf = (ring: Keyring) =>
  `${ring
    .versions()
    .map(({ version, state }) => `${version} ${state}`)
    .join(', ')}; ${ring.minVersion()}`;

describe('a replica killed with -9 at every change it makes to the keyring, beside another one', () => {
  let dir: TempDir;
  let runs = 0;
  before(async () => {
    dir = await tempDir('steps');
  });
  after(() => dir[Symbol.asyncDispose]());

  /** A folder with version 1 retired and version 2 active, and a value under each; for `first` none. */
  async function prepare({ name, given, laterMs = 0 }: Case) {
    const stateDir = path.join(dir.path, `given-${name}`);
    const clock = { ms: START_MS };
    const sealed: { kid: string; value: Value }[] = [];
    if (name === 'first') return { stateDir, nowMs: clock.ms, sealed };
    const options = {
      stateDir,
      name: 'pillars',
      root: rootKey(ROOT),
      prepublishMs: 1000,
      nowMs: () => clock.ms,
    };
    const ring = await openKeyring(options);
    const seal = () => {
      const { kid } = ring.active();
      sealed.push({ kid, value: encodeTree(zEnc, sealValue(ring, AAD, `under ${kid}`)) });
    };
    seal();
    await ring.rotate();
    clock.ms += 1000;
    seal();
    for (const one of given) await ACTS[one](ring);
    clock.ms += laterMs;
    return { stateDir, nowMs: clock.ms, sealed };
  }

  type World = Awaited<ReturnType<typeof prepare>> & { root: string; oldRoot: string };
  const optionsOf = (world: World, stateDir: string) => ({
    ...{ stateDir, name: 'pillars', prepublishMs: 1000, nowMs: () => world.nowMs },
    ...{ root: rootKey(world.root), oldRoot: world.oldRoot === '' ? undefined : rootKey(world.oldRoot) },
  });

  /** Every version that may open does, at each replica, and what seals is the one that is active. */
  async function checkReplicas(rings: readonly Keyring[], { sealed }: World, what: string): Promise<void> {
    for (const ring of rings) {
      await ring.prepare(1);
      const versions = ring.versions();
      const minVersion = ring.minVersion();
      const { kid: active } = ring.active();
      assert.equal(versions.findLast(({ state }) => state === 'active')?.kid, active, what);
      assert.equal(openValue(ring, AAD, encodeTree(zEnc, sealValue(ring, AAD, 'new'))), 'new', what);
      for (const { kid, value } of sealed) {
        const { version, state } =
          versions.find((one) => one.kid === kid) ?? assert.fail(`${what}: ${kid} is gone`);
        const mayOpen = version >= minVersion && state !== 'destroyed';
        if (mayOpen) assert.equal(openValue(ring, AAD, value), `under ${kid}`, what);
        else assert.throws(() => openValue(ring, AAD, value), { code: 'kid_unknown' }, what);
      }
    }
    const [one, other] = rings.map(viewOf);
    assert.equal(one, other ?? one, what);
  }

  /** One kill. @returns whether the act came to its end before it */
  async function dieAt(one: Case, world: World, step: number, when: DeathOrder['when']): Promise<boolean> {
    runs += 1;
    const what = `${one.name}, killed ${when} change ${step}`;
    const stateDir = path.join(dir.path, `run-${runs}`);
    if (one.name !== 'first') await cp(world.stateDir, stateDir, { recursive: true });
    // The replica beside it, of before; on another root key it goes on with the keys it has.
    const beside =
      one.name === 'first'
        ? undefined
        : await openKeyring(optionsOf({ ...world, root: ROOT, oldRoot: '' }, stateDir));
    const order = JSON.stringify({ step, when, below: stateDir });
    const args = [order, one.name, stateDir, world.root, world.oldRoot, String(world.nowMs)];
    const isDone = await runMortal(program, path.join(dir.path, 'order'), args);

    const copy = `${stateDir}-backup`;
    await cp(stateDir, copy, { recursive: true }).catch(ignoreMissing);
    const next = await openKeyring(optionsOf(world, stateDir));
    await beside?.refresh();
    await checkReplicas(beside === undefined ? [next] : [next, beside], world, what);
    // What was copied in that moment is a backup like any other.
    await checkReplicas([await openKeyring(optionsOf(world, copy))], world, `${what}, the backup`);

    await act(one.name, optionsOf(world, stateDir)).catch((thrown: ColonnadeError) => {
      // It is done already, and says so.
      assert.ok(thrown instanceof ColonnadeError && thrown.code === 'conflict', `${what}: ${String(thrown)}`);
    });
    await Promise.all([next.refresh(), beside?.refresh()]);
    const rings = beside === undefined ? [next] : [next, beside];
    await checkReplicas(rings, world, `${what}, done again`);
    // Also where the root key before is not there any more.
    rings.push(await openKeyring(optionsOf({ ...world, oldRoot: '' }, stateDir)));
    assert.deepEqual(
      rings.map(viewOf),
      rings.map(() => one.ends),
      `${what}, done again`,
    );
    return isDone;
  }

  for (const one of CASES)
    test(`${one.name}: the keyring opens, nothing is lost, and it can be done again`, async () => {
      const isMove = one.name === 'root-key';
      const world = { ...(await prepare(one)), root: isMove ? NEXT_ROOT : ROOT, oldRoot: isMove ? ROOT : '' };
      const changes = await killAtEachStep((step, when) => dieAt(one, world, step, when));
      assert.ok(changes >= FEWEST, `${one.name} makes ${changes} changes`);
    });
});

/** Killed before it had made anything at all. */
function ignoreMissing(thrown: NodeJS.ErrnoException): void {
  if (thrown.code !== 'ENOENT') throw thrown;
}
