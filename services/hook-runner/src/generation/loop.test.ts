import assert from 'node:assert/strict';
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { ColonnadeError, estateListTouched, type Touched } from '@colonnade/contracts';
import { createLogger, createMetrics } from '@colonnade/service-kit';
import { fromPlain } from '@colonnade/value';
import { tempDir } from '../../../../test/support/temp.ts';
import { waitFor } from '../../../../test/support/wait-for.ts';
import { readHookRunnerConfig } from '../config.ts';
import { createEvents } from '../events.ts';
import { policyFolders } from '../policy-folders.ts';
import type { GenerationStore } from '../store/generation-store.ts';
import { openRunStore } from '../store/run-store.ts';
import type { GenerationDeps } from './generate.ts';
import { type Sleep, startGenerations } from './loop.ts';

type Answer = (minion: string) => unknown;
type Pause = { ms: number; end(): void };

/** A loop on a real store whose pauses end when the test says so, and its clock has gone on then; or when somebody rings. */
async function startLoop(
  compile: Answer,
  refusal?: () => string | undefined,
  spoil: (store: GenerationStore) => GenerationStore = (store) => store,
) {
  const owned = new AsyncDisposableStack();
  const dir = owned.use(await tempDir('loop')).path;
  const config = readHookRunnerConfig({
    ...{ HOOKS_DIR: path.join(dir, 'hooks.d'), HOOKS_STATE_DIR: dir, GENERATION_DEBOUNCE_MS: '7' },
    ...{ NATS_NKEY_SEED: 'unused' },
  });
  let nowMs = Date.now();
  const file = path.join(dir, 'hooks.sqlite');
  const store = spoil(owned.use(openRunStore(file, { nowMs: () => nowMs })).generations);
  const pauses: Pause[] = [];
  const sleep: Sleep = async (ms, signal) => {
    if (ms === 7 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const end = () => {
        const place = pauses.indexOf(pause);
        if (place >= 0) pauses.splice(place, 1);
        resolve();
      };
      const pause = {
        ms,
        end() {
          nowMs += ms;
          end();
        },
      };
      pauses.push(pause);
      signal.addEventListener('abort', end, { once: true });
    });
  };
  const compiled: string[] = [];
  const request = (async (
    endpoint: unknown,
    asked: { touched?: Touched; minions?: { minion_id: string }[] },
  ) => {
    if (endpoint === estateListTouched) {
      const id = asked.touched?.kind === 'minion' ? asked.touched.id : 'a';
      return { minions: [{ master: 'east', id, hostname: id, agent_type: 'salt', roles: [] }] };
    }
    const ids = (asked.minions ?? []).map(({ minion_id }) => minion_id);
    compiled.push(...ids);
    return { clock: 1, items: ids.map(compile) };
  }) as unknown as GenerationDeps['bus']['request'];
  const runner: GenerationDeps['runner'] = {
    hasHooks: async () => false,
    async run({ event }) {
      const reason = event === 'policy-generation-started' ? refusal?.() : undefined;
      const fault = reason === undefined ? undefined : new ColonnadeError('unavailable', reason);
      return { status: fault === undefined ? 'ok' : 'error', results: [], notRun: [], fault };
    },
  };
  const silent = createLogger({ service: 'hook-runner', level: 'fatal', destination: { write() {} } });
  const events = createEvents(silent, createMetrics('hook-runner'));
  const never = new AbortController().signal;
  const deps = { bus: { request }, store, runner, events, stop: { taking: never, hooks: never } };
  const loop = owned.use(startGenerations(config, deps, sleep));
  const count = () => store.history(50).length;
  return {
    loop,
    touch(id?: string, how: { gone?: boolean } = {}) {
      store.touch([id === undefined ? { kind: 'all' } : { kind: 'minion', master: 'east', id }], how);
      loop.wake();
    },
    policies: (id: string) => policyFolders(dir, 'east', id).current,
    compiled,
    wake: loop.wake,
    left: () => store.pending()?.touched,
    dueInMs: store.dueInMs,
    generations: (wanted: number) => waitFor(`${wanted} generations`, async () => count() === wanted),
    count,
    /** The one it waits in; it is the only one. */
    pause: () => waitFor('a pause', async () => (pauses.length === 1 ? (pauses[0] as Pause) : undefined)),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const fine = () => ({ ok: true, result: { pillar: fromPlain({ a: 1 }), secrets: [] } });
const away = () => ({ ok: false, error: { code: 'unavailable', message: 'nobody is there' } });
const between = (ms: number, least: number, most: number) =>
  assert.ok(ms >= least && ms <= most, `${ms} is not from ${least} to ${most}`);

test('after a generation that went well it waits for the next change, and looks after a minute', async () => {
  await using world = await startLoop(fine);
  assert.equal((await world.pause()).ms, 60_000);
  world.touch();
  await world.generations(1);
  const idle = await world.pause();
  assert.equal(idle.ms, 60_000);
  assert.equal(world.left(), undefined);
  world.touch();
  await world.generations(2);
});

test('what no merger could compile is tried again after five seconds, then ten, and so on', async () => {
  let answer: Answer = away;
  await using world = await startLoop((id) => answer(id));
  world.touch();
  for (const [round, ms] of [5000, 10_000, 20_000, 40_000].entries()) {
    await world.generations(round + 1);
    const pause = await world.pause();
    between(pause.ms, ms, ms * 1.2 + 1);
    assert.equal(world.left(), undefined, 'nothing is due yet');
    pause.end();
  }
  answer = fine;
  await world.generations(5);
  await waitFor('an end', async () => world.left() === undefined && world.dueInMs() === undefined);
  assert.equal((await world.pause()).ms, 60_000);
});

test('a change of another minion does not wait for one that fails, and does not have it tried before its time', async () => {
  await using world = await startLoop((id) => (id === 'a' ? away() : fine()));
  world.touch('a');
  for (const round of [1, 2, 3]) {
    await world.generations(round);
    (await world.pause()).end();
  }
  await world.generations(4);
  between((await world.pause()).ms, 40_000, 48_001);
  world.compiled.splice(0);
  for (const [i, id] of ['b', 'c', 'd'].entries()) {
    world.touch(id);
    await world.generations(5 + i);
    between((await world.pause()).ms, 40_000, 48_001);
  }
  assert.deepEqual(world.compiled, ['b', 'c', 'd']);
  // A change of its own does bring it, once; the pause goes on to grow.
  world.touch('a');
  await world.generations(8);
  assert.equal((await world.pause()).ms, 60_000, 'it looks once a minute anyway');
  between(world.dueInMs() ?? 0, 80_000, 96_001);
  assert.deepEqual(world.compiled, ['b', 'c', 'd', 'a']);
});

test('a change brings the next one at once after the first stop, and after the second not before its least pause', async () => {
  await using world = await startLoop(fine, () => 'not now');
  world.touch();
  await world.generations(1);
  await world.pause();
  world.wake();
  await world.generations(2);
  between((await world.pause()).ms, 120_000, 144_000);
  world.wake();
  const least = await waitFor('the least pause', async () => {
    const pause = await world.pause();
    return pause.ms <= 5000 ? pause : undefined;
  });
  between(least.ms, 1, 5000);
  assert.equal(world.count(), 2);
  least.end();
  await world.generations(3);
});

test('what a hook has stopped stays to be done, and is tried again after a minute', async () => {
  let reason: string | undefined = 'not now';
  await using world = await startLoop(fine, () => reason);
  world.touch();
  await world.generations(1);
  const pause = await world.pause();
  between(pause.ms, 60_000, 72_000);
  assert.deepEqual(world.left(), [{ kind: 'all' }]);
  reason = undefined;
  pause.end();
  await world.generations(2);
  await waitFor('an end', async () => world.left() === undefined);
});

test('a ring while a generation runs is not lost', async () => {
  let world: Awaited<ReturnType<typeof startLoop>> | undefined;
  let rang = false;
  world = await startLoop(() => {
    if (!rang) world?.touch();
    rang = true;
    return fine();
  });
  await using running = world;
  running.touch();
  await running.generations(2);
});

test('it ends in the middle of a pause', async () => {
  const world = await startLoop(away);
  world.touch();
  await world.generations(1);
  await world.pause();
  await world[Symbol.asyncDispose]();
});

test('when the store cannot be read it begins anew, five seconds later', async () => {
  let faults = 0;
  const spoil = (store: GenerationStore): GenerationStore => ({
    ...store,
    history(limit) {
      faults += 1;
      if (faults === 1) throw new Error('disk I/O error');
      return store.history(limit);
    },
  });
  await using world = await startLoop(fine, undefined, spoil);
  const pause = await world.pause();
  assert.equal(pause.ms, 5000);
  world.touch();
  pause.end();
  await world.generations(1);
});

test('who was deleted and is there again has policies, although a hook of the deletion took its folder', async () => {
  await using world = await startLoop(fine);
  world.touch('a');
  await world.generations(1);
  await rm(world.policies('a'), { recursive: true });
  world.touch('a');
  await world.generations(2);
  world.touch('a', { gone: true });
  await world.generations(3);
  assert.deepEqual(await readdir(world.policies('a')), ['pillar.json']);
});
