import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { cp, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { encodeTree, pillarAad, rootTarget, zEnc } from '@colonnade/contracts';
import {
  type EstateReader,
  type EstateStore,
  openSqliteReader,
  openSqliteStore,
} from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import { type Keys, openValue, sealValue } from '../../services/crypto-kms/src/envelope.ts';
import { type DeathOrder, killAtEachStep, runMortal } from '../support/die-at.ts';
import { tempDir } from '../support/temp.ts';
import { NEW_KID, OLD_KID, rewrapAndClose, rewrapKeys } from './rewrap-parts.ts';

const program = new URL('./fixtures/rewrap-act.ts', import.meta.url).pathname;
/** More than one step of the walk, and some with a past. */
const PILLARS = 130;
const WITH_PAST = 40;
const FEWEST = 6;

const HEX = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')];
const KEYS = rewrapKeys(HEX);
const BEFORE: Keys = { ...KEYS, active: () => KEYS.find(OLD_KID) ?? assert.fail() };
const aadOf = (name: string) => pillarAad({ ...rootTarget, name });
const seal = (name: string, text: string) => encodeTree(zEnc, sealValue(BEFORE, aadOf(name), text));

async function fill(store: EstateStore): Promise<void> {
  const names = Array.from({ length: PILLARS }, (_, i) => `s${i}`);
  const made = names.map((name) => {
    const record = { pid: name, ...rootTarget, name, value: seal(name, `first of ${name}`), isSecret: true };
    return { kind: 'pillar.create' as const, record };
  });
  await store.write({ mutations: made, events: [], by: 'ann', atMs: 1 });
  const updated = names.slice(0, WITH_PAST).map((pid) => {
    const value = seal(pid, `second of ${pid}`);
    return { kind: 'pillar.update' as const, pid, value, isSecret: true, expectTick: undefined };
  });
  await store.write({ mutations: updated, events: [], by: 'ann', atMs: 2 });
}

/** As a merge reads them; every one must open, whatever happens beside it. */
async function mergeOnce(reader: EstateReader, keys: Keys): Promise<{ name: string; tick: number }[]> {
  const none = { since: undefined, collections: false, masters: [], minions: [] };
  const { scopes } = await reader.snapshot({ ...none, scopes: [rootTarget.pillarenv] });
  const rows = scopes.get(rootTarget.pillarenv) ?? [];
  assert.equal(rows.length, PILLARS);
  return rows.map(({ name, value, tick }) => {
    const which = Number(name.slice(1)) < WITH_PAST ? 'second' : 'first';
    assert.equal(openValue(keys, aadOf(name), value), `${which} of ${name}`);
    return { name, tick };
  });
}

async function pastOf(store: EstateStore, keys: Keys): Promise<Value[]> {
  const opened: Value[] = [];
  for (let i = 0; i < WITH_PAST; i++)
    for (const { value, name } of await store.listVersions(`s${i}`))
      opened.push(openValue(keys, aadOf(name), value as Value));
  return opened;
}

test('a pillar-api killed with -9 at every commit of a rewrap: every secret opens, and it can be ended', async () => {
  await using dir = await tempDir('rewrap-steps');
  const given = path.join(dir.path, 'given');
  await mkdir(given);
  {
    await using store = await openSqliteStore({ path: path.join(given, 'estate.sqlite') });
    await fill(store);
  }
  const orderFile = path.join(dir.path, 'order');
  const past = Array.from({ length: WITH_PAST }, (_, i) => [`first of s${i}`, `second of s${i}`]).flat();

  async function dieAt(step: number, when: DeathOrder['when']): Promise<boolean> {
    const folder = path.join(dir.path, `${when}-${step}`);
    await cp(given, folder, { recursive: true });
    const file = path.join(folder, 'estate.sqlite');
    await using merger = await openSqliteReader({ path: file });
    const ticks = await mergeOnce(merger, KEYS);
    const order = JSON.stringify({ step, when, below: folder });
    let isOver = false;
    const running = runMortal(program, orderFile, [order, file, ...HEX]).finally(() => {
      isOver = true;
    });
    do {
      await mergeOnce(merger, KEYS);
      // The other has work to do.
      await delay(10);
    } while (!isOver);
    const isDone = await running;

    await using store = await openSqliteStore({ path: file });
    assert.deepEqual(await mergeOnce(merger, KEYS), ticks, `${when} ${step}: no pillar has changed`);
    assert.deepEqual(await pastOf(store, KEYS), past);
    await rewrapAndClose(store, KEYS);
    const only = rewrapKeys(HEX, 'new');
    assert.deepEqual(await mergeOnce(merger, only), ticks);
    assert.deepEqual(await pastOf(store, only), past);
    assert.deepEqual([...(await store.countKeyUse()).keys()], [NEW_KID]);
    assert.deepEqual(await store.readClosedKids(), [OLD_KID]);
    assert.deepEqual(await store.readOutbox(10), []);
    return isDone;
  }

  const commits = await killAtEachStep(dieAt);
  assert.ok(commits >= FEWEST, `${commits} commits`);
});
