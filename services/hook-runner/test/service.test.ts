import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  buildOwnEvent,
  encode,
  eventSubject,
  type HookRun,
  hooksRun,
  KEYS_SOURCE,
  startCall,
  zCloudEvent,
} from '@colonnade/contracts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { HOOK_EVENT_NAMES } from '../src/run/hook-events.ts';
import { type PreparedRunner, prepareRunner } from './support.ts';

const minion = {
  master: 'east',
  id: 'web-1',
  facts: {
    hostname: 'web-1.example',
    os_name: 'Debian',
    os_version: '13',
    os_service_pack: '',
    os_string: 'Debian GNU/Linux 13 (trixie)',
    ips: ['192.0.2.7', '2001:db8::7'],
    agent_type: 'salt',
    roles: ['web', 'cache'],
  },
};

describe('a runner', () => {
  let prepared: PreparedRunner;
  let url: string;
  before(async () => {
    prepared = await prepareRunner();
    ({ url } = await prepared.start());
  });
  after(() => prepared[Symbol.asyncDispose]());

  const outHas = (line: string) =>
    waitFor(`the line ${line}`, async () => (await prepared.out()).includes(line));

  test('makes the folders that are missing, with README and example, and touches no other', async () => {
    assert.deepEqual((await readdir(prepared.hooksDir)).sort(), [...HOOK_EVENT_NAMES].sort());
    const folder = path.join(prepared.hooksDir, 'node-pre-deletion');
    assert.deepEqual(await readdir(folder), ['10-example.disabled', 'README.md']);
    await writeFile(path.join(folder, 'README.md'), 'mine');
    await using again = await prepared.start();
    assert.ok(again.url);
    assert.equal(await readFile(path.join(folder, 'README.md'), 'utf8'), 'mine');
  });

  test('gives the hooks of each event the parameters Rudder documents', async () => {
    const show = 'echo "$(basename "$PWD") $(env | grep ^RUDDER | LC_ALL=C sort | tr "\\n" "|")" >> $OUT';
    for (const event of [
      'node-inventory-received-pending',
      'node-inventory-received-accepted',
      'node-post-acceptance',
      'node-post-deletion',
    ] as const) {
      await prepared.hook(event, '10', show);
    }
    const subject = '/masters/east/minions/web-1';
    await prepared.publish('minion.inventory-received', subject, { ...minion, state: 'pending' });
    await prepared.publish('minion.registered', subject, minion);
    await prepared.publish('minion.inventory-received', subject, { ...minion, state: 'accepted' });
    await prepared.publish('minion.deleted', subject, { master: 'east', id: 'web-1', collections: [] });
    await waitFor('four runs', async () => (await prepared.out()).length === 4);
    const node = 'RUDDER_AGENT_TYPE=salt|RUDDER_NODE_HOSTNAME=web-1.example|RUDDER_NODE_ID=web-1|';
    const system =
      'RUDDER_NODE_IPS=192.0.2.7 2001:db8::7|RUDDER_NODE_OS_NAME=Debian|RUDDER_NODE_OS_SP=|' +
      'RUDDER_NODE_OS_STRING=Debian GNU/Linux 13 (trixie)|RUDDER_NODE_OS_VERSION=13|RUDDER_NODE_POLICY_SERVER_ID=east|';
    const share = path.join(prepared.dir, 'state', 'share', 'east', 'web-1');
    assert.deepEqual(await prepared.out(), [
      `node-inventory-received-pending ${node}${system}`,
      `node-post-acceptance ${node}RUDDER_NODE_POLICY_SERVER_ID=east|`,
      `node-inventory-received-accepted ${node}${system}`,
      `node-post-deletion RUDDER_AGENT_TYPE=salt|RUDDER_NODE_HOSTNAME=web-1|RUDDER_NODE_ID=web-1|RUDDER_NODE_POLICY_SERVER_ID=east|RUDDER_NODE_ROLES=|RUDDER_POLICIES_DIRECTORY_ARCHIVE=${share}/rules.archive|RUDDER_POLICIES_DIRECTORY_CURRENT=${share}/rules|RUDDER_POLICIES_DIRECTORY_NEW=${share}/rules.new|`,
    ]);
    const records = await waitFor('their records', async () => {
      const found = (await prepared.audited()).filter((record) => record.startsWith('node-'));
      return found.length >= 4 ? found : undefined;
    });
    // One for each run, though there is nothing to be said of its hooks.
    assert.deepEqual(records, [
      'node-inventory-received-pending undefined ok',
      'node-post-acceptance undefined ok',
      'node-inventory-received-accepted undefined ok',
      'node-post-deletion undefined ok',
    ]);
  });

  test('hands over an inventory that could not be used as a file only it can read', async () => {
    await prepared.hook(
      'node-inventory-received-failed',
      '10',
      'echo "failed $(stat -c %a "$RUDDER_INVENTORY_PATH") $(cat "$RUDDER_INVENTORY_PATH") $COLONNADE_ERROR_MESSAGE" >> $OUT',
    );
    const data = { inventory: '{"not": "one', reason: 'no JSON' };
    await prepared.publish('minion.inventory-failed', '/inventories', data);
    await outHas('failed 600 {"not": "one no JSON');
  });

  test("gives hooks of Colonnade's own events what happened, and no value", async () => {
    await prepared.hook(
      'pillar-changed',
      '10',
      'echo "$COLONNADE_EVENT_TYPE $COLONNADE_EVENT_SUBJECT $COLONNADE_EVENT_DATA" >> $OUT',
    );
    await prepared.publish('pillar.updated', '/pillars/p1', { pid: 'p1', name: 'motd' });
    await outHas('colonnade.pillar.updated.v1 /pillars/p1 {"name":"motd","pid":"p1"}');
    await prepared.publish('estate.imported', '/import', { scopes: ['base'] });
    await outHas('colonnade.estate.imported.v1 /import {"scopes":["base"]}');
  });

  test('gives hooks of services outside what those have published, whatever type it says it is of', async () => {
    await prepared.hook(
      'external-event',
      '10',
      'echo "$COLONNADE_EVENT_SOURCE $COLONNADE_EVENT_TYPE $COLONNADE_EVENT_ID $COLONNADE_EVENT_DATA" >> $OUT',
    );
    const source = 'urn:colonnade:service:shop';
    const { id } = await prepared.publishOfService('shop', 'order.placed', { total: 42 });
    await outHas(`${source} order.placed ${id} {"total":42}`);
    const before = await prepared.out();
    const forged = await prepared.publishOfService('shop', 'colonnade.pillar.updated.v1', {});
    await outHas(`${source} colonnade.pillar.updated.v1 ${forged.id} {}`);
    assert.equal((await prepared.out()).length, before.length + 1);
  });

  test('events of one subject keep their order, and an error does not hold up what comes after', async () => {
    await prepared.hook('pillar-changed', '10', 'echo "order $COLONNADE_EVENT_CLOCK" >> $OUT; exit 9');
    const clocks: string[] = [];
    for (let i = 0; i < 20; i++) {
      clocks.push((await prepared.publish('pillar.updated', '/pillars/p2', { pid: 'p2' })).clock);
    }
    await outHas(`order ${clocks.at(-1)}`);
    const ran = (await prepared.out())
      .filter((line) => line.startsWith('order '))
      .map((line) => line.slice(6));
    assert.deepEqual(ran, clocks);
  });

  test('what warned, failed, was killed or slow is in the log, a metric and the audit', async () => {
    await prepared.hook('key-changed', '10', 'echo careful; exit 40');
    await prepared.hook('key-changed', '20', '# HOOK_WARN_TIMEOUT = 1 ms\nsleep 0.1; exit 0');
    await prepared.hook('key-changed', '30', 'exit 0');
    await prepared.hook('key-changed', '40', '# HOOK_KILL_TIMEOUT = 50 ms\nsleep 600');
    await prepared.hook('key-changed', '50', 'exit 0');
    await prepared.publish('key.activated', '/keys/k2', { kid: 'k2' });
    const records = await waitFor('the records', async () => {
      const found = (await prepared.audited()).filter((record) => record.startsWith('key-changed'));
      return found.length >= 4 ? found : undefined;
    });
    assert.deepEqual(records.sort(), [
      'key-changed 10 warning',
      'key-changed 20 slow',
      'key-changed 40 killed',
      'key-changed undefined error',
    ]);
    const says = prepared.logged('hook says').find(({ event }) => event === 'key-changed');
    assert.deepEqual([says?.hook, says?.stream, says?.line], ['10', 'stdout', 'careful']);
    const ended = prepared.logged('hook ended').filter(({ event }) => event === 'key-changed');
    assert.deepEqual(
      ended.map(({ hook, level }) => `${hook} ${level}`),
      ['10 warn', '20 debug', '30 debug', '40 error'],
    );
    assert.deepEqual(
      prepared.logged('hook takes long').map(({ hook }) => hook),
      ['20'],
    );
    const metrics = await (await fetch(`${url}/metrics`)).text();
    assert.match(
      metrics,
      /colonnade_hooks_total\{event="key-changed",status="killed",service="hook-runner"\} 1/u,
    );
    assert.match(metrics, /colonnade_hooks_slow_total\{event="key-changed",service="hook-runner"\} 1/u);
    assert.match(
      metrics,
      /colonnade_hook_runs_total\{event="key-changed",status="error",service="hook-runner"\} 1/u,
    );
  });

  test('an event that cannot be read is left out, with an error in the log', async () => {
    const message = { subject: 'colonnade.events.v1.pillar.updated', msgId: 'x', payload: Buffer.from('{') };
    await prepared.api.publishDurable(message, startCall(5000));
    await waitFor('the line', () => prepared.logged('event cannot be read, and is left out').length === 1);
    const { clock } = await prepared.publish('pillar.updated', '/pillars/p3', { pid: 'p3' });
    await outHas(`order ${clock}`);
  });

  test('an event that says it is another than its subject says is left out: rights are rights on subjects', async () => {
    await prepared.hook('key-changed', '05', 'echo "key $COLONNADE_EVENT_ID" >> $OUT');
    await prepared.hook('node-post-deletion', '05', 'echo deleted >> $OUT');
    const left = () => prepared.logged('event cannot be read, and is left out').length;
    const before = left();
    const kms = await prepared.bus.as('crypto-kms');
    const tell = async (type: string, id: string) => {
      const about = { source: KEYS_SOURCE, subject: '/keys/pillars', incarnation: '1', id };
      const event = buildOwnEvent({ ...about, type, data: { master: 'east', id: 'web-1' } });
      const payload = encode(zCloudEvent, event);
      await kms.publishDurable({ subject: eventSubject('key.rotated'), msgId: id, payload }, startCall(5000));
    };
    await tell('minion.deleted', 'forged');
    await tell('key.rotated', 'true');
    await outHas('key true');
    assert.equal(left(), before + 1);
    assert.ok(!(await prepared.out()).includes('deleted'));
  });

  const ask = (run: string, budgetMs = 10_000): Promise<HookRun> =>
    prepared.api.request(
      hooksRun,
      {
        event: 'node-pre-deletion',
        run,
        subject: '/masters/east/minions/web-1',
        by: 'alice',
        parameters: { RUDDER_NODE_ID: 'web-1', RUDDER_NODE_POLICY_SERVER_ID: 'east' },
      },
      startCall(budgetMs),
    );

  test('a veto is answered with what the hook wrote; without hooks nothing is in the way', async () => {
    assert.deepEqual(await ask('a'), { status: 'ok', results: [], not_run: [] });
    await prepared.hook('node-pre-deletion', '10', 'echo asked; echo "in use" >&2; exit 3');
    await prepared.hook('node-pre-deletion', '20', 'exit 0');
    const { status, results, not_run } = await ask('b');
    assert.deepEqual([status, not_run], ['error', ['20']]);
    const [{ duration_ms, ...veto } = { duration_ms: -1 }] = results;
    assert.ok(duration_ms >= 0);
    assert.deepEqual(veto, { hook: '10', status: 'error', reason: 'exit code 3', message: 'in use' });
    await prepared.hook('node-pre-deletion', '10', 'exit 0');
    assert.equal((await ask('b')).status, 'ok');
  });

  test('who asks again while the hooks run gets the same answer', async () => {
    await prepared.hook(
      'node-pre-deletion',
      '10',
      `echo asked >> $OUT; until [ -e ${prepared.dir}/go ]; do sleep 0.01; done`,
    );
    await assert.rejects(ask('c', 300), { code: 'unavailable' });
    const again = ask('c');
    await writeFile(path.join(prepared.dir, 'go'), '');
    assert.equal((await again).status, 'ok');
    assert.deepEqual(
      (await prepared.out()).filter((line) => line === 'asked'),
      ['asked'],
    );
  });

  test('nobody else may ask', async () => {
    const thief = await prepared.bus.as('pillar-merger');
    const request = { event: 'node-pre-deletion', run: 'x', subject: 'x', by: 'x', parameters: {} } as const;
    await assert.rejects(thief.request(hooksRun, request, startCall(1000)));
  });
});
