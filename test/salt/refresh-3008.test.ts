import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Salt, startSalt } from '../support/salt.ts';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { reasonToSkip } from './full-stack.ts';

const MASTER = 'm1';
const WEB = 'web-1';
const DB = 'db-1';

/** A file of the master that both minions' pillar takes in: who refreshes holds its newest text, who does not the one before. */
const witness = (text: string) => `witness: ${text}\n`;

describe('Salt refreshes the pillar of those whose policies changed', { skip: await reasonToSkip() }, () => {
  let world: TestStack;
  let estate: ReturnType<typeof writeEstate>;
  let salt: Salt;
  let motd: string;
  before(async () => {
    world = await stackForTests({ env: { GENERATION_DEBOUNCE_MS: '50', HOOKS_GRACE_MS: '100' } });
    estate = writeEstate(world.api);
    const { redis, secrets } = world.stack;
    const { token, redisUser, redisPassword } = await world.addMaster(MASTER);
    for (const id of [WEB, DB]) await estate.minion(MASTER, id, []);
    salt = await startSalt({
      version: '3008',
      install: 'package',
      minion: WEB,
      otherMinion: DB,
      secrets: { password: redisPassword, token, 'api-token': secrets.adminToken },
      colonnade: (file) => ({
        master: MASTER,
        host: redis.host,
        port: redis.port,
        username: redisUser,
        password_file: file('password'),
        token_file: file('token'),
        breaker: { cooldown_ms: 500 },
      }),
      engine: { batch: 1, splay_ms: 10 },
      states: {},
      pillars: { 'top.sls': "base:\n  '*':\n    - app\n", 'app.sls': witness('first') },
    });
  });
  after(async () => {
    await salt?.stop();
    await world?.[Symbol.asyncDispose]();
  });

  /** What the running minion holds, without asking its master. */
  const held = async (minion: string, name: string) => {
    const { value } = await salt.saltTo(minion, 'pillar.raw', name);
    return (value as Record<string, unknown> | undefined)?.[minion];
  };
  const holds = (minion: string, name: string, wanted: string) =>
    waitFor(`${name} of ${minion} to be ${wanted}`, async () => (await held(minion, name)) === wanted, {
      limitMs: 60_000,
      everyMs: 200,
    });
  const setWitness = (text: string) => writeFile(path.join(salt.dir, 'pillars', 'app.sls'), witness(text));
  const ofMinion = (id: string) => ({ tgt_type: 'minion', master: MASTER, minion_id: id });

  test('one pillar changes, and only its minion refreshes', async () => {
    motd = (await estate.pillar({ tgt_type: 'root' }, 'motd', 'hello')).pid;
    for (const minion of [WEB, DB]) await holds(minion, 'motd', 'hello');
    await setWitness('second');
    await estate.pillar(ofMinion(WEB), 'own', 'of web');
    await holds(WEB, 'own', 'of web');
    assert.equal(await held(WEB, 'witness'), 'second');
    assert.equal(await held(DB, 'witness'), 'first');
  });

  test('a minion whose new policies a hook refuses is not refreshed, though its generation has others', async () => {
    const check = path.join(world.stack.hooksDir, 'policy-generation-node-ready', '10-check');
    await writeFile(check, `#!/bin/sh\n[ "$RUDDER_NODE_ID" != ${DB} ]\n`, { mode: 0o755 });
    await setWitness('third');
    await estate.update(motd, 'changed');
    await holds(WEB, 'motd', 'changed');
    assert.equal(await held(DB, 'witness'), 'first');
    assert.equal(await held(DB, 'motd'), 'hello');
  });

  test('what was to be refreshed while Redis was away is refreshed afterwards', async () => {
    const { redis } = world.stack;
    await redis.kill('SIGKILL');
    await estate.pillar(ofMinion(WEB), 'later', 'yes');
    await redis.restart();
    await holds(WEB, 'later', 'yes');
  });

  test('what the master does for a minion is one call, for it alone', async () => {
    const { value, text } = await salt.saltRun('jobs.list_jobs', 'search_function=saltutil.refresh_pillar');
    assert.ok(typeof value === 'object' && value !== null, text);
    const targets = Object.values(value as Record<string, { Target: unknown }>).map(({ Target }) => Target);
    assert.deepEqual([...new Set(targets.map((target) => JSON.stringify(target)))].sort(), [
      JSON.stringify([DB]),
      JSON.stringify([WEB]),
    ]);
  });
});
