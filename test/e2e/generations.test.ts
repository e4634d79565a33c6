import assert from 'node:assert/strict';
import { chmod, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fromPlain, toPlain, type Value } from '@colonnade/value';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

const MASTER = 'east';

describe('when pillars change', () => {
  let world: TestStack;
  let estate: ReturnType<typeof writeEstate>;
  before(async () => {
    world = await stackForTests({ mergers: 2, env: { GENERATION_DEBOUNCE_MS: '50', HOOKS_GRACE_MS: '100' } });
    estate = writeEstate(world.api);
    await world.addMaster(MASTER);
    await estate.collection('web');
    await estate.minion(MASTER, 'web-1', ['web']);
    await estate.minion(MASTER, 'db-1', []);
  });
  after(() => world[Symbol.asyncDispose]());

  const state = () => path.join(world.stack.dir, 'hooks');
  const read = async (minion: string, folder = 'rules') => {
    const file = path.join(state(), 'share', MASTER, minion, folder, 'pillar.json');
    return JSON.parse(await readFile(file, 'utf8').catch(() => 'null')) as Record<string, unknown> | null;
  };
  const info = (name: string) => readFile(path.join(state(), 'policy-generation-info', name), 'utf8');
  const hook = async (event: string, name: string, script: string) => {
    const file = path.join(world.stack.hooksDir, event, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, `#!/bin/sh\n${script}\n`);
    await chmod(file, 0o755);
    return file;
  };
  /** Written at the end of a generation, after the policies are in force. */
  const infoHas = (name: string, wanted: RegExp) =>
    waitFor(`${wanted} in ${name}`, async () => wanted.test(await info(name)));
  const has = (minion: string, name: string, value: unknown) =>
    waitFor(`${name} of ${minion}`, async () => (await read(minion))?.[name] === value, { limitMs: 20_000 });
  const inode = async (minion: string) =>
    (await stat(path.join(state(), 'share', MASTER, minion, 'rules'))).ino;

  test('each minion has its policies; a secret stays sealed in them', async () => {
    await estate.pillar({ tgt_type: 'root' }, 'motd', 'hello');
    await estate.pillar({ tgt_type: 'collection', collection_id: 'web' }, 'key', 'S3CRET', true);
    await has('db-1', 'motd', 'hello');
    const policies = await waitFor('the secret', async () => {
      const found = await read('web-1');
      return found?.key === undefined ? undefined : found;
    });
    assert.equal(policies.motd, 'hello');
    assert.ok(!JSON.stringify(policies).includes('S3CRET'));
    assert.deepEqual(Object.keys(policies.key as object), ['$enc']);
    assert.equal((await read('db-1'))?.key, undefined);
  });

  test('exactly those it touches are written, and their old policies are kept', async () => {
    const { pid } = await estate.pillar(
      { tgt_type: 'minion', minion_id: 'web-1', master: MASTER },
      'own',
      'a',
    );
    await has('web-1', 'own', 'a');
    const before = await inode('db-1');
    await estate.update(pid, 'b');
    await has('web-1', 'own', 'b');
    assert.equal((await read('web-1', 'rules.archive'))?.own, 'a');
    assert.equal(await inode('db-1'), before);
    await infoHas(
      'last-updated-nodeids',
      /^# .*\nRUDDER_UPDATED_POLICY_SERVER_IDS=\(\)\nRUDDER_UPDATED_NODE_IDS=\('web-1'\)\nRUDDER_NODE_IDS=\('web-1'\)\n$/u,
    );
    // One that changes nothing for anybody: overridden by the minion's own.
    await estate.pillar({ tgt_type: 'root' }, 'own', 'root');
    await has('db-1', 'own', 'root');
    await infoHas('last-updated-nodeids', /RUDDER_NODE_IDS=\('db-1'\)/u);
  });

  test('a node-ready hook that refuses keeps the old policies of its minion alone; the generation fails', async () => {
    const check = await hook(
      'policy-generation-node-ready',
      '10-check',
      `[ "$RUDDER_NODE_ID" != web-1 ] || { grep -q bad "$RUDDER_POLICIES_DIRECTORY_NEW/pillar.json" && exit 4; }; exit 0`,
    );
    const failed = path.join(world.stack.dir, 'failed');
    const mail = await hook(
      'policy-generation-failed',
      '10-tell',
      `cp "$RUDDER_ERROR_MESSAGE_PATH" ${failed}`,
    );
    await estate.pillar({ tgt_type: 'root' }, 'state', 'bad');
    await has('db-1', 'state', 'bad');
    const message = await waitFor('the failure', () => readFile(failed, 'utf8'));
    assert.match(
      message,
      /^# The generation of .* failed\n1 minions keep their old policies\neast\/web-1: 10-check: exit code 4\n$/u,
    );
    assert.equal((await read('web-1'))?.state, undefined);
    await assert.rejects(stat(path.join(state(), 'share', MASTER, 'web-1', 'rules.new')));
    await rm(check);
    await rm(mail);
  });

  test('a generation asked for takes up what was refused; with all everything is written', async () => {
    await world.api.call('POST', '/generations');
    await has('web-1', 'state', 'bad');
    const before = await inode('db-1');
    await world.api.call('POST', '/generations', fromPlain({ all: true }));
    await waitFor('new folders', async () => (await inode('db-1')) !== before);
    const ids = await waitFor('the list', async () => {
      const text = await info('last-updated-nodeids');
      return text.includes("'web-1'") && text.includes("'db-1'") ? text : undefined;
    });
    assert.ok(ids);
  });

  test('a runner killed in a generation: the next one ends it, and nobody has half a policy', async () => {
    const started = path.join(world.stack.dir, 'started');
    const hang = await hook('policy-generation-node-ready', '10-hang', `echo > ${started}; sleep 600`);
    await estate.pillar({ tgt_type: 'root' }, 'after', 'kill');
    await waitFor('a hook', () => stat(started));
    await world.stack.hooks.kill('SIGKILL');
    for (const minion of ['web-1', 'db-1']) assert.equal((await read(minion))?.after, undefined);
    await rm(hang);
    await world.stack.hooks.restart();
    for (const minion of ['web-1', 'db-1']) await has(minion, 'after', 'kill');
  });

  test('mergers and NATS that were away: what changed meanwhile is generated when they are back', async () => {
    const { mergers, nats } = world.stack;
    for (const merger of mergers) await merger.kill('SIGKILL');
    await estate.pillar({ tgt_type: 'root' }, 'meanwhile', 1n);
    await nats.kill('SIGKILL');
    await nats.restart();
    for (const merger of mergers) await merger.restart();
    for (const minion of ['web-1', 'db-1']) await has(minion, 'meanwhile', 1);
  });

  test('an import is generated for whom it concerns; a pillar and a minion that move, at both their places', async () => {
    const before = await inode('db-1');
    const records = [
      { kind: 'pillar', tgt_type: 'collection', collection_id: 'web', name: 'imported', value: 1 },
      { kind: 'pillar', tgt_type: 'minion', master: MASTER, minion_id: 'web-1', name: 'moves', value: 'x' },
    ];
    const body = new Blob(records.map((record) => `${JSON.stringify(record)}\n`)).stream();
    const headers = { 'content-type': 'application/x-ndjson' };
    await (await world.api.stream('POST', '/import', { body, headers })).arrayBuffer();
    await has('web-1', 'imported', 1);
    assert.equal((await read('web-1'))?.moves, 'x');
    assert.equal(await inode('db-1'), before);
    const found = await world.api.call('POST', '/pillars/search', fromPlain({ name: 'moves' }));
    const { pid, etag } = (toPlain(found.value as Value) as { items: { pid: string; etag: string }[] })
      .items[0] as { pid: string; etag: string };
    const target = fromPlain({ tgt_type: 'minion', master: MASTER, minion_id: 'db-1' });
    const moved = await world.api.call('POST', `/pillars/${pid}/move`, target, { 'if-match': etag });
    await has('db-1', 'moves', 'x');
    await has('web-1', 'moves', undefined);
    const renamed = { 'if-match': moved.headers.get('etag') ?? '' };
    await world.api.call('POST', `/pillars/${pid}/rename`, fromPlain({ name: 'renamed' }), renamed);
    await has('db-1', 'renamed', 'x');
    assert.equal((await read('db-1'))?.moves, undefined);
    await world.addMaster('west');
    const url = `/masters/${MASTER}/minions/db-1`;
    const now = (await world.api.call('GET', url)).headers.get('etag') ?? '';
    await world.api.call('POST', `${url}/move`, fromPlain({ master: 'west' }), { 'if-match': now });
    await waitFor('its policies at the other master', async () => {
      const file = path.join(state(), 'share', 'west', 'db-1', 'rules', 'pillar.json');
      return JSON.parse(await readFile(file, 'utf8').catch(() => '{}')).renamed === 'x';
    });
    await waitFor('the old folder to be gone', async () =>
      stat(path.join(state(), 'share', MASTER, 'db-1')).then(
        () => false,
        () => true,
      ),
    );
  });

  test('a minion that is deleted keeps its folder until its hooks have ended, also when everybody is generated meanwhile', async () => {
    await estate.minion(MASTER, 'gone-2', []);
    await has('gone-2', 'motd', 'hello');
    const at = (name: string) => path.join(world.stack.dir, name);
    const script = `: > ${at('asked')}; while [ ! -e ${at('go')} ]; do sleep 0.02; done
      test -e "$RUDDER_POLICIES_DIRECTORY_CURRENT/pillar.json" && echo there > ${at('found')}; exit 0`;
    const look = await hook('node-post-deletion', '10-look', script);
    const before = new Date().toISOString();
    const url = `/masters/${MASTER}/minions/gone-2`;
    const etag = (await world.api.call('GET', url)).headers.get('etag') ?? '';
    await world.api.call('DELETE', url, undefined, { 'if-match': etag });
    await waitFor('the hook', () => stat(at('asked')));
    // Its event is not taken for hooks before that one ends, and generated all the same.
    await estate.pillar({ tgt_type: 'root' }, 'beside', 'a deletion');
    await waitFor('a generation of everybody', async () => {
      const { value } = await world.api.call('GET', '/generations?limit=1');
      const { items } = toPlain(value as Value) as { items: { id: string; updated_count: number }[] };
      return items.some(({ id, updated_count }) => id > before && updated_count > 0);
    });
    await writeFile(at('go'), '');
    await waitFor('what it found', () => readFile(at('found'), 'utf8'));
    await waitFor('the folder to be gone', async () =>
      stat(path.join(state(), 'share', MASTER, 'gone-2')).then(
        () => false,
        () => true,
      ),
    );
    await rm(look);
  });

  test('a minion that is deleted has no policies any more', async () => {
    await estate.minion(MASTER, 'gone-1', []);
    await has('gone-1', 'motd', 'hello');
    const url = `/masters/${MASTER}/minions/gone-1`;
    const etag = (await world.api.call('GET', url)).headers.get('etag') ?? '';
    await world.api.call('DELETE', url, undefined, { 'if-match': etag });
    await waitFor('the folder to be gone', async () =>
      stat(path.join(state(), 'share', MASTER, 'gone-1')).then(
        () => false,
        () => true,
      ),
    );
  });
});
