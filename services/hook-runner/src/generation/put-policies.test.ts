import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { ColonnadeError, type TouchedMinion } from '@colonnade/contracts';
import { fromPlain, type Value } from '@colonnade/value';
import { tempDir } from '../../../../test/support/temp.ts';
import { waitFor } from '../../../../test/support/wait-for.ts';
import { policyFolders } from '../policy-folders.ts';
import type { GenerationStore } from '../store/generation-store.ts';
import { openRunStore } from '../store/run-store.ts';
import { repairFolders } from './folders.ts';
import type { GenerationHooks } from './generation-hooks.ts';
import { createMinionStep } from './minion-step.ts';
import { createStopwatch } from './stopwatch.ts';

const IDS = ['a', 'b', 'c'];
const minionOf = (id: string): TouchedMinion => ({
  ...{ master: 'east', id, hostname: id, agent_type: 'salt', roles: [] },
});
const SEALED = { $enc: { v: 1, alg: 'A', kid: 'k', nonce_b64: 'n', ct_b64: 'c', dek_wrapped_b64: 'w' } };

/** A state folder with its file, and generations on them, each of which has the hooks it is given. */
async function startWorld() {
  const owned = new AsyncDisposableStack();
  const dir = owned.use(await tempDir('put')).path;
  const file = path.join(dir, 'hooks.sqlite');
  const open = () => owned.use(openRunStore(file)).generations;
  const ran: string[] = [];
  const hooks: GenerationHooks = {
    run: async () => undefined,
    ready: async (generation, { id }) => void ran.push(`ready ${generation} ${id}`),
    finished: async (generation, { id }) => void ran.push(`finished ${generation} ${id}`),
    any: async () => false,
  };
  const stepOf = (
    store: GenerationStore,
    more: Partial<GenerationHooks> = {},
    generation = 'g',
    { generationHooksMs = 60_000, concurrency = 1 } = {},
  ) =>
    createMinionStep(
      false,
      { stateDir: dir, generationHooksMs, concurrency },
      { generation, store, hooks: { ...hooks, ...more }, watch: createStopwatch() },
    );
  const foldersOf = (id: string) => policyFolders(dir, 'east', id);
  const read = async (id: string, which: 'current' | 'archive' = 'current') => {
    const text = await readFile(path.join(foldersOf(id)[which], 'pillar.json'), 'utf8').catch(() => 'null');
    return (JSON.parse(text) as { v?: unknown } | null)?.v;
  };
  return {
    ...{ ran, open, stepOf, foldersOf, read },
    readAll: () => Promise.all(IDS.map((id) => read(id))),
    /** What the next leader does before anything else. */
    repair: async () => {
      for (const id of IDS) await repairFolders(foldersOf(id));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const compiled = (v: unknown, secrets: string[] = [], ids = IDS) =>
  ids.map((id) => ({ minion: minionOf(id), result: { pillar: fromPlain({ v }) as Value, secrets } }));
const names = (store: GenerationStore) => store.swapped().map(({ id }) => id);
const broken = () => {
  throw new ColonnadeError('unavailable', 'cut');
};

describe('policies that come into force together', () => {
  test('all are written, noted and told of; the same ones again change nothing', async () => {
    await using world = await startWorld();
    const store = world.open();
    await world.stepOf(store).take(compiled(1));
    assert.deepEqual(await world.readAll(), [1, 1, 1]);
    assert.deepEqual(names(store).sort(), IDS);
    const before = await stat(world.foldersOf('a').current);
    await world.stepOf(store).take(compiled(1));
    assert.equal((await stat(world.foldersOf('a').current)).ino, before.ino);
    assert.deepEqual(world.ran, []);
  });

  test('who does not lead any more swaps nothing, and notes nothing', async () => {
    await using world = await startWorld();
    const old = world.open();
    await world.stepOf(old).take(compiled(1));
    const leader = world.open();
    await assert.rejects(world.stepOf(old).take(compiled(2)), { code: 'conflict' });
    assert.deepEqual(await world.readAll(), [1, 1, 1]);
    assert.equal(leader.digestsOf(IDS.map(minionOf)).size, 3);
    await world.repair();
    await world.stepOf(leader).take(compiled(2));
    assert.deepEqual(await world.readAll(), [2, 2, 2]);
  });

  /** Where it is cut, and what is in force before anything is repaired. */
  const cuts: readonly [string, (store: GenerationStore) => GenerationStore, number][] = [
    ['before the fence', (store) => ({ ...store, beginSwap: broken }), 1],
    ['after the swaps, before their note', (store) => ({ ...store, noteSwapped: broken }), 2],
  ];
  for (const [when, cut, inForce] of cuts) {
    for (const wanted of [2, 1]) {
      test(`cut ${when}, and ${wanted} is wanted after it: everybody has it, and the one before is kept`, async () => {
        await using world = await startWorld();
        const store = world.open();
        await world.stepOf(store).take(compiled(0));
        await world.stepOf(store).take(compiled(1));
        await assert.rejects(world.stepOf(cut(store)).take(compiled(2)), { code: 'unavailable' });
        assert.deepEqual(
          await world.readAll(),
          IDS.map(() => inForce),
        );
        const next = world.open();
        await world.repair();
        await world.stepOf(next).take(compiled(wanted));
        assert.deepEqual(
          await world.readAll(),
          IDS.map(() => wanted),
        );
        const archived = wanted === 2 ? 1 : inForce === 2 ? 2 : 0;
        assert.equal(await world.read('a', 'archive'), archived);
        assert.deepEqual(names(next).sort(), IDS);
        assert.equal(next.digestsOf(IDS.map(minionOf)).size, 3);
      });
    }
  }

  test('a swap that fails for one leaves the others whole, and the next generation ends it', async () => {
    await using world = await startWorld();
    const store = world.open();
    await world.stepOf(store).take(compiled(1));
    const beginSwap = (minions: Parameters<GenerationStore['beginSwap']>[0]) => {
      store.beginSwap(minions);
      rmSync(world.foldersOf('b').next, { recursive: true });
    };
    const step = world.stepOf({ ...store, beginSwap });
    await step.take(compiled(2));
    assert.deepEqual(
      step.failed.map(({ minion, reason, retryable }) => [minion.id, reason, retryable]),
      [['b', 'its folder cannot be used: ENOENT', true]],
    );
    assert.deepEqual(await world.readAll(), [2, 1, 2]);
    await world.stepOf(store).take(compiled(2));
    assert.deepEqual(await world.readAll(), [2, 2, 2]);
    assert.equal(await world.read('b', 'archive'), 1);
  });

  test('a file in the place of a folder is the trouble of one minion, until it is gone', async () => {
    await using world = await startWorld();
    const store = world.open();
    const place = path.dirname(world.foldersOf('b').current);
    await mkdir(path.dirname(place), { recursive: true });
    await writeFile(place, '');
    const step = world.stepOf(store);
    await step.take(compiled(1));
    assert.deepEqual(
      step.failed.map(({ minion, retryable }) => [minion.id, retryable]),
      [['b', true]],
    );
    assert.deepEqual(await world.readAll(), [1, undefined, 1]);
    assert.deepEqual(names(store).sort(), ['a', 'c']);
    rmSync(place);
    await world.stepOf(store).take(compiled(1));
    assert.deepEqual(await world.readAll(), [1, 1, 1]);
  });

  test('policies in force that cannot be read are written anew', async () => {
    await using world = await startWorld();
    const store = world.open();
    await mkdir(world.foldersOf('a').current, { recursive: true });
    await writeFile(path.join(world.foldersOf('a').current, 'pillar.json'), '{"v":');
    await world.stepOf(store).take(compiled(1));
    assert.deepEqual(await world.readAll(), [1, 1, 1]);
  });

  test('cut before the archive is cleaned: nothing plain of a secret stays after the next generation', async () => {
    await using world = await startWorld();
    const store = world.open();
    await world.stepOf(store).take(compiled('plain'));
    const sealed = compiled(SEALED, ['v']);
    // The swaps are done by hand: cut between them and what follows.
    const { swapFolders, writeNext } = await import('./folders.ts');
    const { policyOf } = await import('./content.ts');
    store.beginSwap(IDS.map(minionOf));
    for (const { minion, result } of sealed) {
      await writeNext(world.foldersOf(minion.id), policyOf(result).text);
      await swapFolders(world.foldersOf(minion.id));
    }
    assert.equal(await world.read('a', 'archive'), 'plain');
    await world.stepOf(world.open()).take(sealed);
    for (const id of IDS) assert.equal(await world.read(id, 'archive'), undefined);
  });
});

describe('policies with hooks for each minion', () => {
  const any = async () => true;

  test('one minion after the other, and a refusal is its own', async () => {
    await using world = await startWorld();
    const store = world.open();
    const ready: GenerationHooks['ready'] = async (_, { id }) => {
      world.ran.push(`ready ${id} ${names(store)}`);
      return id === 'b' ? '10-check: exit code 1' : undefined;
    };
    const step = world.stepOf(store, { any, ready });
    await step.take(compiled(1));
    assert.deepEqual(world.ran, ['ready a ', 'finished g a', 'ready b a', 'ready c a', 'finished g c']);
    assert.deepEqual(
      step.failed.map(({ minion, reason, retryable }) => [minion.id, reason, retryable]),
      [['b', '10-check: exit code 1', false]],
    );
    assert.deepEqual(await world.readAll(), [1, undefined, 1]);
    await assert.rejects(stat(world.foldersOf('b').next));
    assert.deepEqual(store.owed(), []);
  });

  test('several at once, but never more than told, of all answers together', async () => {
    await using world = await startWorld();
    let running = 0;
    let most = 0;
    const ready = async () => {
      running += 1;
      most = Math.max(most, running);
      await waitFor('a second one', () => most === 2);
      await setImmediate();
      running -= 1;
      return undefined;
    };
    const step = world.stepOf(world.open(), { any, ready }, 'g', { concurrency: 2 });
    await Promise.all([step.take(compiled(1)), step.take(compiled(1, [], ['d', 'e', 'f']))]);
    assert.equal(most, 2);
    assert.deepEqual(step.failed, []);
    assert.deepEqual(
      await Promise.all([...IDS, 'd', 'e', 'f'].map((id) => world.read(id))),
      [1, 1, 1, 1, 1, 1],
    );
  });

  test('only the time of the hooks counts; whose turn comes after it keeps its policies, and is tried again', async (t) => {
    let nowMs = 0;
    t.mock.method(performance, 'now', () => nowMs);
    await using world = await startWorld();
    const store = world.open();
    const spend = (ms: number) => {
      nowMs += ms;
    };
    const step = world.stepOf(
      store,
      { any, ready: async () => void spend(30), finished: async () => void spend(50) },
      'g',
      { generationHooksMs: 50 },
    );
    spend(60);
    await step.take(compiled(1));
    assert.deepEqual(
      step.failed.map(({ minion, reason, retryable }) => [minion.id, reason, retryable]),
      [['c', 'the time for hooks is used up', true]],
    );
    assert.deepEqual(await world.readAll(), [1, 1, undefined]);
  });

  test('a fault of a merger is tried again', async () => {
    await using world = await startWorld();
    const step = world.stepOf(world.open());
    const codes = ['internal', 'unavailable', 'too_large'] as const;
    await step.take(
      codes.map((code, i) => ({ minion: minionOf(`${IDS[i]}`), result: new ColonnadeError(code, 'x') })),
    );
    assert.deepEqual(
      step.failed.map(({ retryable }) => retryable),
      [true, true, false],
    );
  });

  test('finished hooks that a generation was cut before run with the next one, under its name', async () => {
    await using world = await startWorld();
    const step = world.stepOf(world.open(), { any, finished: broken });
    await assert.rejects(step.take(compiled(1)), { code: 'unavailable' });
    assert.deepEqual(world.ran, ['ready g a']);
    const next = world.open();
    await world.repair();
    const later = world.stepOf(next, { any }, 'h');
    await later.runOwed();
    assert.deepEqual(world.ran.splice(1), ['finished g a']);
    await later.runOwed();
    await later.take(compiled(1));
    assert.deepEqual(world.ran.splice(1), ['ready h b', 'finished h b', 'ready h c', 'finished h c']);
  });
});
