import assert from 'node:assert/strict';
import { readdir, readFile, utimes } from 'node:fs/promises';
import { test } from 'node:test';
import { tempDir } from '../../../test/support/temp.ts';
import { inventoryFolder, placeInventory } from './failed-inventories.ts';

test('inventories that failed are bounded: the oldest make room, and that of the run is there', async () => {
  await using dir = await tempDir('inventories');
  const config = { stateDir: dir.path };
  for (let i = 0; i < 30; i += 1) {
    const { RUDDER_INVENTORY_PATH: file = '' } = await placeInventory(
      config,
      { id: `e:${i}`, inventory: `${i}` },
      8,
    );
    assert.equal(await readFile(file, 'utf8'), `${i}`);
    await utimes(file, i, i);
    assert.ok((await readdir(inventoryFolder(config))).length <= 8);
  }
});

test('a run of another event has no inventory', async () => {
  await using dir = await tempDir('inventories');
  assert.deepEqual(await placeInventory({ stateDir: dir.path }, { id: 'e:1' }), {});
});
