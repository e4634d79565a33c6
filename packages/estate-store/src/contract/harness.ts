import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { ColonnadeError, type ErrorCode } from '@colonnade/contracts';
import { fromPlain, type Value } from '@colonnade/value';
import type {
  EstateReader,
  EstateSnapshot,
  EstateStore,
  Mutation,
  OutboxDraft,
  WriteBatch,
} from '../port.ts';

/** What an adapter gives the contract suite: one empty estate, opened as often as asked. */
export interface EstateHarness extends AsyncDisposable {
  openStore(options?: StoreOptions): Promise<EstateStore>;
  openReader(): Promise<EstateReader>;
  /** A process that opens this estate and calls `runContractWriter`; stdout is a pipe, stderr inherited. */
  spawnWriter(): ChildProcess;
}

export type StoreOptions = { changeTicksKept?: number; newIncarnation?: boolean };

export type CreateHarness = () => Promise<EstateHarness>;

/** Runs a test on an empty estate with one open store. */
export async function withStore(
  create: CreateHarness,
  test: (store: EstateStore, harness: EstateHarness) => Promise<void>,
  options: StoreOptions = {},
): Promise<void> {
  await using harness = await create();
  await using store = await harness.openStore(options);
  await test(store, harness);
}

export const NOW_MS = 1_700_000_000_000;

export function batch(
  mutations: readonly Mutation[],
  events: readonly OutboxDraft[] = [],
  more: Partial<WriteBatch> = {},
): WriteBatch {
  return { mutations, events, by: 'ada', atMs: NOW_MS, ...more };
}

type PillarDraft = Extract<Mutation, { kind: 'pillar.create' }>['record'];

export function createPillar(pid: string, more: Partial<PillarDraft> = {}): Mutation {
  const value = fromPlain({ of: pid });
  const record = {
    pid,
    tgtType: 'root',
    tgtId: 'root',
    pillarenv: 'base',
    name: pid,
    value,
    isSecret: false,
  };
  return { kind: 'pillar.create', record: { ...(record as PillarDraft), ...more } };
}

export function updatePillar(pid: string, value: Value, expectTick?: number): Mutation {
  return { kind: 'pillar.update', pid, value, isSecret: false, expectTick };
}

export function deletePillar(pid: string, expectTick?: number): Mutation {
  return { kind: 'pillar.delete', pid, expectTick };
}

type PutOf<K extends Mutation['kind']> = Extract<Mutation, { kind: K }>;

export function putCollection(
  id: string,
  more: Partial<PutOf<'collection.put'>['record']> = {},
): PutOf<'collection.put'> {
  return {
    kind: 'collection.put',
    expect: 'absent',
    record: { id, name: id, parentId: undefined, owner: 'ada', ...more },
  };
}

export function putMaster(
  id: string,
  more: Partial<PutOf<'master.put'>['record']> = {},
): PutOf<'master.put'> {
  const record = { id, envs: ['prod'], tokenIds: ['jti-1'], onUnknownMinion: 'register' as const, ...more };
  return { kind: 'master.put', expect: 'absent', record };
}

export function putMinion(
  master: string,
  id: string,
  collections: readonly string[] = [],
): PutOf<'minion.put'> {
  return { kind: 'minion.put', expect: 'absent', record: { master, id, collections, registeredBy: 'ada' } };
}

export function putToken(id: string, more: Partial<PutOf<'token.put'>['record']> = {}): PutOf<'token.put'> {
  const record = { id, hash: 'ab'.repeat(32), sub: 'ada', roles: ['viewer' as const], createdAtMs: NOW_MS };
  const unset = { scopedRoles: [], expiresAtMs: undefined, lastUsedAtMs: undefined };
  return { kind: 'token.put', expect: 'absent', record: { ...record, ...unset, ...more } };
}

export function putTemplate(
  id: string,
  more: Partial<PutOf<'template.put'>['record']> = {},
): PutOf<'template.put'> {
  return { kind: 'template.put', expect: 'absent', record: { id, name: id, schema: true, ...more } };
}

/** Of the template `t1`, for `web1` of `m1`. */
export function createTask(
  id: string,
  more: Partial<PutOf<'task.create'>['record']> = {},
): PutOf<'task.create'> {
  const minions = [{ master: 'm1', id: 'web1' }];
  const record = { id, templateId: 't1', minions, collections: [], expiresAtMs: undefined };
  return { kind: 'task.create', record: { ...record, ...more } };
}

export function event(data: unknown): OutboxDraft {
  return { type: 'pillar.changed', subject: 'base', data: fromPlain(data) };
}

/** Writes and gives the tick it made. */
export async function writeTick(store: EstateStore, ...mutations: readonly Mutation[]): Promise<number> {
  const result = await store.write(batch(mutations));
  return result.clock.tick;
}

/** Asserts that a promise rejects with this code. */
export async function assertRefused(promise: Promise<unknown>, code: ErrorCode, label = ''): Promise<void> {
  const outcome = await promise.then(
    () => 'nothing was refused',
    (thrown: unknown) => thrown,
  );
  assert.ok(outcome instanceof ColonnadeError, `${label}: ${String(outcome)}`);
  assert.equal(outcome.code, code, `${label}: ${outcome.message}`);
}

/** Exactly one of two rivals wins; the other is refused with this code. Gives the winner's place. */
export function assertOneWins(outcomes: readonly PromiseSettledResult<unknown>[], code: ErrorCode): number {
  const winners = outcomes.flatMap(({ status }, index) => (status === 'fulfilled' ? [index] : []));
  assert.equal(winners.length, 1, 'exactly one wins');
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') assert.equal((outcome.reason as ColonnadeError).code, code);
  }
  return winners[0] as number;
}

/** A snapshot of nothing but what is asked for. */
export function look(
  reader: EstateReader,
  query: Partial<Parameters<EstateReader['snapshot']>[0]> = {},
): Promise<EstateSnapshot> {
  return reader.snapshot({
    since: undefined,
    scopes: [],
    collections: false,
    masters: [],
    minions: [],
    ...query,
  });
}

/** Everything of a small estate that the port shows, for comparing before and after. */
export async function dump(store: EstateStore): Promise<unknown> {
  const everything = { after: undefined, limit: 500 };
  const tgtTypes = ['root', 'collection', 'minion', 'task_tpl', 'task'] as const;
  const pillars = await store.listPillars({ tgtTypes }, everything);
  return {
    clock: (await look(store)).clock,
    pillars,
    versions: await Promise.all(pillars.rows.map(({ pid }) => store.listVersions(pid))),
    collections: await store.listCollections(),
    masters: await store.listMasters(),
    minions: await store.listMinions({}, everything),
    tokens: await store.listTokens(),
    outbox: await store.readOutbox(10_000),
  };
}

/** For `JSON.stringify`, which takes no bigint. */
export function showBigint(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

/** Waits until the question is answered with something; the limit is generous, since machines are busy. */
export async function waitFor<T>(ask: () => Promise<T | undefined>, limitMs = 10_000): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    assert.ok(performance.now() < deadline, 'waited in vain');
    await delay(5);
  }
}
