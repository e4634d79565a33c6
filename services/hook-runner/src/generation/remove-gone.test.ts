import assert from 'node:assert/strict';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import type { Touched } from '@colonnade/contracts';
import { tempDir } from '../../../../test/support/temp.ts';
import type { GenerationStore } from '../store/generation-store.ts';
import { openRunStore } from '../store/run-store.ts';
import { removeGone } from './remove-gone.ts';

const DAY_MS = 86_400_000;
const ALL: Touched = { kind: 'all' };
const east = (id: string) => ({ master: 'east', id });

/** Folders of three minions, of which only `here` is in the estate. */
async function startWorld() {
  const owned = new AsyncDisposableStack();
  const { path: stateDir } = owned.use(await tempDir('gone'));
  let nowMs = Date.now();
  const runs = owned.use(openRunStore(path.join(stateDir, 'hooks.sqlite'), { nowMs: () => nowMs }));
  for (const id of ['here', 'deleted', 'moved']) {
    await mkdir(path.join(stateDir, 'share', 'east', id, 'rules'), { recursive: true });
  }
  const store: GenerationStore = runs.generations;
  return {
    ...{ store, stateDir },
    remove: async () => {
      const pending = store.pending();
      assert.ok(pending !== undefined);
      return removeGone(pending, [east('here')], { stateDir }, store);
    },
    left: async () => (await readdir(path.join(stateDir, 'share', 'east'))).sort(),
    pass: (ms: number) => {
      nowMs += ms;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

test('who is not in the estate keeps its folder until it is told to be gone, whatever is generated', async () => {
  await using world = await startWorld();
  world.store.touch([ALL]);
  world.store.touch([{ kind: 'minion', ...east('deleted') }]);
  assert.deepEqual(await world.remove(), []);
  assert.deepEqual(await world.left(), ['deleted', 'here', 'moved']);
  world.store.touch([{ kind: 'minion', ...east('deleted') }], { gone: true });
  world.store.touch([{ kind: 'minion', ...east('here') }], { gone: true });
  assert.deepEqual(await world.remove(), []);
  assert.deepEqual(await world.left(), ['here', 'moved'], 'who was registered again keeps its own');
});

test('a folder of nobody goes when the stream cannot tell of a deletion any more', async () => {
  await using world = await startWorld();
  world.store.touch([ALL]);
  await world.remove();
  world.pass(7 * DAY_MS);
  await world.remove();
  assert.deepEqual(await world.left(), ['deleted', 'here', 'moved']);
  world.pass(DAY_MS);
  await world.remove();
  assert.deepEqual(await world.left(), ['here']);
});

test('a folder that cannot be removed is tried again as one that is gone', async () => {
  await using world = await startWorld();
  const place = path.join(world.stateDir, 'share', 'west');
  await writeFile(place, 'a file in the place of a folder');
  world.store.touch([{ kind: 'minion', master: 'west', id: 'x' }], { gone: true });
  assert.deepEqual(
    (await world.remove()).map(({ minion, retryable, gone }) => [minion, retryable, gone]),
    [[{ master: 'west', id: 'x' }, true, true]],
  );
  await rm(place);
  assert.deepEqual(await world.remove(), []);
});
