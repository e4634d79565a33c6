import assert from 'node:assert/strict';
import { rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { createLogger, createMetrics } from '@colonnade/service-kit';
import { fromPlain } from '@colonnade/value';
import { tempDir } from '../../../../test/support/temp.ts';
import { createEvents } from '../events.ts';
import { policyFolders } from '../policy-folders.ts';
import { openRunStore } from '../store/run-store.ts';
import { checkFolders } from './check-folders.ts';
import { policyOf } from './content.ts';
import { readDigest, swapFolders, writeNext } from './folders.ts';

test('whose folder does not hold what is noted is generated anew, whatever happened to it; of the others nothing', async () => {
  await using dir = await tempDir('check');
  using runs = openRunStore(path.join(dir.path, 'hooks.sqlite'));
  const store = runs.generations;
  const ids = ['same', 'changed', 'gone', 'cut', 'back'];
  const minions = ids.map((id) => ({
    ...{ master: 'east', id, hostname: id, agent_type: 'salt', roles: [] },
  }));
  const foldersOf = (id: string) => policyFolders(dir.path, 'east', id);
  const [before, now] = [0, 1].map((v) => policyOf({ pillar: fromPlain({ v }), secrets: [] }));
  assert.ok(before !== undefined && now !== undefined);
  for (const id of ids) {
    for (const { text } of [before, now]) {
      await writeNext(foldersOf(id), text);
      await swapFolders(foldersOf(id));
    }
  }
  store.noteSwapped(
    minions.map((minion) => ({ minion, digest: now.digest })),
    undefined,
  );
  await writeFile(path.join(foldersOf('changed').current, 'pillar.json'), '');
  await rm(path.dirname(foldersOf('gone').current), { recursive: true });
  // Between two renames, and as if the disk had neither of them.
  await rename(foldersOf('cut').current, foldersOf('cut').next);
  await rm(foldersOf('back').current, { recursive: true });
  const silent = createLogger({ service: 'hook-runner', level: 'fatal', destination: { write() {} } });
  const events = createEvents(silent, createMetrics('hook-runner'));
  await checkFolders({ stateDir: dir.path }, store, events, new AbortController().signal);
  const wanted = ['back', 'changed', 'gone'];
  const touched = (store.pending()?.touched ?? []).map((one) => (one.kind === 'minion' ? one.id : one.kind));
  assert.deepEqual(touched.sort(), wanted);
  assert.deepEqual([...store.digests().keys()].sort(), ['east/cut', 'east/same']);
  assert.equal(await readDigest(foldersOf('cut').current), now.digest);
  assert.equal(await readDigest(foldersOf('back').current), before.digest);
});
