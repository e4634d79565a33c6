import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { type EstateStore, openSqliteStore } from '@colonnade/estate-store';
import { tempDir } from '../../../test/support/temp.ts';

const TASKS = 40;
const written = { by: 'ann', atMs: 1, events: [] };

async function fill(store: EstateStore): Promise<void> {
  const minions = [{ master: 'm1', id: 'web' }];
  const master = { id: 'm1', envs: [], tokenIds: [], onUnknownMinion: 'refuse' } as const;
  const minion = { master: 'm1', id: 'web', collections: [], registeredBy: 'ann' };
  const template = { id: 'deploy', name: 'deploy', schema: true } as const;
  await store.write({
    ...written,
    mutations: [
      { kind: 'master.put', expect: 'absent', record: master },
      { kind: 'minion.put', expect: 'absent', record: minion },
      { kind: 'template.put', expect: 'absent', record: template },
    ],
  });
  for (let i = 0; i < TASKS; i += 1) await make(store, `t${i}`, minions);
}

const make = (store: EstateStore, id: string, minions = [{ master: 'm1', id: 'web' }]) =>
  store.write({
    ...written,
    mutations: [
      {
        kind: 'task.create',
        record: { id, templateId: 'deploy', minions, collections: [], expiresAtMs: undefined },
      },
    ],
  });

test('a task that was read is read anew after every write, by whichever store on the file', async () => {
  await using dir = await tempDir('kept');
  const file = path.join(dir.path, 'estate.sqlite');
  await using writer = await openSqliteStore({ path: file });
  await fill(writer);
  await using other = await openSqliteStore({ path: file });
  for (let i = 0; i < TASKS; i += 1) {
    const id = `t${i}`;
    for (const store of [writer, other])
      for (let again = 0; again < 3; again += 1) assert.equal((await store.getTask(id))?.state, 'created');
    const by = i % 2 === 0 ? writer : other;
    const task = await by.getTask(id);
    await by.write({
      ...written,
      mutations: [{ kind: 'task.setState', id, expectTick: task?.tick, state: 'succeeded' }],
    });
    for (const store of [writer, other]) assert.equal((await store.getTask(id))?.state, 'succeeded');
  }
});

test('one that is not there is looked for again when somebody has made it', async () => {
  await using dir = await tempDir('kept');
  await using store = await openSqliteStore({ path: path.join(dir.path, 'estate.sqlite') });
  await fill(store);
  // More than are kept.
  for (let i = 0; i < 2500; i += 1) assert.equal(await store.getTask(`none-${i}`), undefined);
  await make(store, 'none-7');
  assert.equal((await store.getTask('none-7'))?.id, 'none-7');
});
