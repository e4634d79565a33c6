import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fromPlain, toPlain } from '@colonnade/value';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

const MASTER = 'east';
/** More than are compiled with one request, so that several batches are under way at once. */
const MINIONS = Array.from({ length: 200 }, (_, i) => `m-${i}`);
const LONG = { limitMs: 60_000, everyMs: 50 };

describe('policies that come into force in batches', () => {
  const owned = new AsyncDisposableStack();
  let world: TestStack;
  let estate: ReturnType<typeof writeEstate>;
  let pid: string;

  before(async () => {
    world = owned.use(await stackForTests({ mergers: 2, env: { GENERATION_DEBOUNCE_MS: '20' } }));
    estate = writeEstate(world.api);
    await world.addMaster(MASTER);
    for (const minion of MINIONS) await estate.minion(MASTER, minion, []);
    ({ pid } = await estate.pillar({ tgt_type: 'root' }, 'motd', 'value 0'));
    await inForce('value 0');
  });
  after(() => owned.disposeAsync());

  const motdOf = async (minion: string, folder = 'rules'): Promise<string | undefined> => {
    const file = path.join(world.stack.dir, 'hooks', 'share', MASTER, minion, folder, 'pillar.json');
    const text = await readFile(file, 'utf8').catch(() => undefined);
    return text === undefined ? undefined : (JSON.parse(text) as { motd?: string }).motd;
  };
  const all = (folder?: string) => Promise.all(MINIONS.map((minion) => motdOf(minion, folder)));
  const inForce = (value: string) =>
    waitFor(`${value} everywhere`, async () => (await all()).every((motd) => motd === value), LONG);
  const newest = async () => {
    const { value } = await world.api.call('GET', '/generations?limit=1');
    type Generation = { id: string; updated_count: number };
    return (toPlain(value ?? fromPlain({})) as { items: Generation[] }).items[0];
  };

  // The place of the minion after whose new policies the runner is killed: in the first batch, between batches, at the end.
  for (const [round, place] of [0, 40, 100, 199].entries()) {
    test(`killed when ${MINIONS[place]} has its new ones: all get them once, and one generation tells of all`, async () => {
      const [before, value] = [`value ${round}`, `value ${round + 1}`];
      const last = (await newest())?.id ?? '';
      await estate.update(pid, value);
      const isThere = async () => (await motdOf(MINIONS[place] ?? '')) === value;
      await waitFor('the place', isThere, { limitMs: 60_000, everyMs: 1 });
      await world.stack.hooks.kill('SIGKILL');
      for (const motd of await all())
        assert.ok(motd === undefined || motd === before || motd === value, motd);
      await world.stack.hooks.restart();
      await inForce(value);
      const generation = await waitFor(
        'the generation after it',
        async () => {
          const found = await newest();
          return found !== undefined && found.id > last ? found : undefined;
        },
        LONG,
      );
      assert.equal(generation.updated_count, MINIONS.length);
      // Written twice, the archive would hold what is in force.
      assert.deepEqual(new Set(await all('rules.archive')), new Set([before]));
    });
  }
});
