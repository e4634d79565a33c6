import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Bus, route } from '@colonnade/bus';
import {
  ColonnadeError,
  type Explanation,
  estateRegisterMinion,
  mergerExplain,
  type Origin,
  type ResolvedTarget,
  SECRET_MASK,
} from '@colonnade/contracts';
import type { ServiceProcess } from '@colonnade/embedded';
import { toPlain } from '@colonnade/value';
import { waitFor } from '../../../test/support/wait-for.ts';
import {
  call,
  collectionTarget,
  minionTarget,
  outcomeOf,
  rootTarget,
  startWorld,
  type TestMaster,
  type World,
} from './support.ts';

let world: World;
let master: TestMaster;
let operator: Bus;
let merger: ServiceProcess;

before(async () => {
  world = await startWorld();
  master = await world.addMaster('salt-1', { onUnknownMinion: 'register' });
  await world.addCollection('eu');
  await world.addCollection('web', 'eu');
  await world.addMinion('salt-1', 'web-1', ['web']);
  await world.addPillar(rootTarget, 'role', 'none');
  await world.addPillar(collectionTarget('eu', 'ann'), 'role', 'eu');
  await world.addPillar(collectionTarget('web', 'ann'), 'role', 'web');
  await world.addSecret(rootTarget, 'password', 'of root');
  await world.addPillar(minionTarget('web-1', 'salt-1'), 'n', 1);
  merger = await world.startMerger();
  operator = await world.bus.as('operator');
  await waitFor('an answer', async () => (await ask('web-1')) !== undefined);
});
after(() => world[Symbol.asyncDispose]());

const explain = (pillarenv: string, minion_id = 'web-1', id = 'salt-1') =>
  operator.request(mergerExplain, { master: id, minion_id, pillarenv }, call());
const ask = async (minionId: string) => outcomeOf(await master.client.ask({ minionId, pillarenv: 'auto' }));

test('values are left out when they are not wanted, secret or not', async () => {
  const request = { master: 'salt-1', minion_id: 'web-1', pillarenv: 'auto' };
  const { keys } = await operator.request(mergerExplain, { ...request, omit_values: true }, call());
  assert.deepEqual(
    keys.map(({ name, value, is_secret }) => [name, value, is_secret]),
    [
      ['n', null, false],
      ['password', null, true],
      ['role', null, false],
    ],
  );
});

test('each key tells the scope that won and those it overrode, and no secret', async () => {
  const { keys, pillarenv, clock } = await explain('auto');
  assert.equal(pillarenv, 'base,collection:web;user:ann');
  assert.ok(clock > 0);
  const short = keys.map(({ name, value, is_secret, winner, overrode }) => ({
    ...{ name, value: toPlain(value), is_secret, winner: winner.pillarenv },
    overrode: overrode.map((origin) => origin.pillarenv),
  }));
  assert.deepEqual(short, [
    { name: 'n', value: 1, is_secret: false, winner: 'minion_id:web-1;master:salt-1', overrode: [] },
    { name: 'password', value: SECRET_MASK, is_secret: true, winner: 'base', overrode: [] },
    {
      name: 'role',
      value: 'web',
      is_secret: false,
      winner: 'collection:web;user:ann',
      overrode: ['collection:eu;user:ann', 'base'],
    },
  ]);
});

test('explain gives no more than the minion would get', async () => {
  await assert.rejects(explain('minion_id:db-1;master:salt-1'), { code: 'forbidden' });
  await assert.rejects(explain('staging'), { code: 'forbidden' });
  await assert.rejects(explain('auto', 'new-1'), { code: 'unknown_minion' });
  await assert.rejects(explain('auto', 'web-1', 'salt-9'), { code: 'unknown_master' });
  assert.equal(await world.store.getMinion('salt-1', 'new-1'), undefined, 'explaining registers nobody');
});

const preview = (more: object, pillarenv = 'auto', id = 'web-1') => {
  const asked = { master: 'salt-1', minion_id: id, pillarenv, ...more };
  return operator.request(mergerExplain, asked, call());
};
const change = (op: 'set' | 'delete', target: ResolvedTarget, name: string, is_secret = false) => {
  const { tgtType: tgt_type, tgtId: tgt_id, pillarenv } = target;
  return { op, tgt_type, tgt_id, pillarenv, name, is_secret };
};
/** name, value, `pillarenv#change` of the winner and of what it overrode. */
const told = ({ keys }: Explanation) =>
  keys.map(({ name, value, winner, overrode }) => {
    const from = (origin: Origin) => {
      return `${origin.pillarenv.split(';')[0]}${origin.change === undefined ? '' : `#${origin.change}`}`;
    };
    return [name, toPlain(value), from(winner), overrode.map(from)];
  });

test('changes that are not saved are merged as if they were, without their values', async () => {
  const web = collectionTarget('web', 'ann');
  const changes = [
    change('set', collectionTarget('eu', 'ann'), 'n'),
    change('set', minionTarget('web-1', 'salt-1'), 'role'),
    change('set', rootTarget, 'fresh'),
    change('set', web, 'password', true),
    change('delete', web, 'role'),
    change('set', rootTarget, 'role'),
    change('set', collectionTarget('us', 'ann'), 'elsewhere'),
  ];
  const found = await preview({ changes });
  assert.deepEqual(told(found), [
    ['fresh', null, 'base#2', []],
    ['n', 1, 'minion_id:web-1', ['collection:eu#0']],
    ['password', SECRET_MASK, 'collection:web#3', ['base']],
    ['role', null, 'minion_id:web-1#1', ['collection:eu', 'base#5']],
  ]);
  const [fresh, , password, role] = found.keys;
  assert.deepEqual([fresh?.winner.pid, password?.winner.pid, password?.is_secret], [null, null, true]);
  const stored = (await explain('auto')).keys.find(({ name }) => name === 'role');
  assert.equal(role?.overrode[1]?.pid, stored?.overrode[1]?.pid, 'what is there keeps its pid');
  assert.equal(stored?.winner.change, undefined);
  assert.deepEqual(toPlain(stored?.value ?? null), 'web', 'nothing was saved, nor is it remembered');
});

test('memberships are supposed with all they bring and take, entitlement included', async () => {
  assert.deepEqual(told(await preview({ collections: [] })), [
    ['n', 1, 'minion_id:web-1', []],
    ['password', SECRET_MASK, 'base', []],
    ['role', 'none', 'base', []],
  ]);
  const asked = ['base,collection:web;user:ann', 'web-2'] as const;
  await world.addMinion('salt-1', 'web-2');
  await assert.rejects(preview({}, ...asked), { code: 'forbidden' });
  assert.deepEqual(told(await preview({ collections: ['web'] }, ...asked)).at(-1), [
    ...['role', 'web', 'collection:web', ['collection:eu', 'base']],
  ]);
  await assert.rejects(preview({ collections: ['eu'] }, ...asked), { code: 'forbidden' });
  const other = change('set', minionTarget('web-2', 'salt-1'), 'n');
  await assert.rejects(preview({ changes: [other] }, 'minion_id:web-2;master:salt-1'), { code: 'forbidden' });
  await assert.rejects(preview({ collections: ['nowhere'] }), { code: 'bad_request' });
  await assert.rejects(preview({ collections: [] }, 'auto', 'new-1'), { code: 'unknown_minion' });
});

test('scopes as they once were are merged instead of what they hold now, and no other is read', async () => {
  const pillar = (pid: string, name: string, { tgtType, tgtId }: ResolvedTarget, is_secret = false) => {
    return { pid, name, tgt_type: tgtType, tgt_id: tgtId, is_secret };
  };
  const eu = collectionTarget('eu', 'ann');
  const own = minionTarget('web-1', 'salt-1');
  const scopes = [rootTarget, eu, collectionTarget('web', 'ann'), own].map(({ pillarenv }) => pillarenv);
  assert.deepEqual((await explain('auto')).scopes, scopes);
  const past = scopes.map((pillarenv) => ({ pillarenv, pillars: [] as ReturnType<typeof pillar>[] }));
  past[0]?.pillars.push(pillar('p1', 'role', rootTarget), pillar('p2', 'key', rootTarget, true));
  past[1]?.pillars.push(pillar('p3', 'role', eu));
  const changes = [change('set', own, 'key'), change('delete', eu, 'role')];
  assert.deepEqual(told(await preview({ past })), [
    ['key', SECRET_MASK, 'base', []],
    ['role', null, 'collection:eu', ['base']],
  ]);
  assert.deepEqual(told(await preview({ past, changes })), [
    ['key', null, 'minion_id:web-1#0', ['base']],
    ['role', null, 'base', []],
  ]);
  const { keys } = await preview({ past });
  assert.deepEqual([keys[1]?.winner.pid, keys[1]?.overrode[0]?.pid], ['p3', 'p1']);
  await assert.rejects(preview({ past: past.slice(1) }), { code: 'unavailable' });
  await assert.rejects(preview({ past, collections: ['nowhere'] }), { code: 'bad_request' });
});

test("a task's pillars, secrets opened, go to its minions alone, and end with it", async () => {
  const template = { id: 'deploy', name: 'Deploy', schema: true };
  const target = { tgtType: 'task', tgtId: 'k1', pillarenv: 'task:k1' } as const;
  const minions = [{ master: 'salt-1', id: 'web-1' }];
  const record = { id: 'k1', templateId: 'deploy', minions, collections: [], expiresAtMs: undefined };
  await world.write(
    { kind: 'template.put', expect: 'absent', record: template },
    { kind: 'task.create', record },
  );
  await world.addSecret(target, 'password', 'of the task');
  await world.addPillar(target, 'version', '1.2');
  const got = async (minionId: string, pillarenv = 'base,task:k1') =>
    outcomeOf(await master.client.ask({ minionId, pillarenv }));
  assert.deepEqual(await got('web-1'), { role: 'none', n: 1, password: 'of the task', version: '1.2' });
  assert.equal(await got('web-2'), 'forbidden');
  assert.equal(await got('web-1', 'task_tpl:deploy;user:ann'), 'forbidden');
  const { keys } = await explain('base,task:k1');
  assert.deepEqual(keys.find(({ name }) => name === 'password')?.winner.pillarenv, 'task:k1');
  await world.write({ kind: 'task.setState', id: 'k1', expectTick: undefined, state: 'cancelled' });
  assert.equal(await got('web-1'), 'forbidden', 'at once, on the first merge after the write');
});

test('explain works while the KMS is away', async () => {
  await world.kms.kill('SIGSTOP');
  try {
    assert.equal((await explain('auto')).keys.length, 3);
  } finally {
    await world.kms.kill('SIGCONT');
  }
});

test('a first request registers its minion with the owner of the estate', async () => {
  assert.equal(await ask('new-1'), 'unavailable', 'nobody there to register it');
  const asked: string[] = [];
  const api = await world.bus.as('pillar-api');
  const answer = route(estateRegisterMinion, async ({ token, master: id, minion_id }) => {
    asked.push(minion_id);
    assert.equal(token, master.token);
    if (minion_id === 'bad-1') throw new ColonnadeError('unknown_minion', 'not this one');
    if (minion_id === 'lost-1') return {};
    await world.addMinion(id, minion_id, []);
    return {};
  });
  const service = { name: 'pillar-api', version: '0.1.0', description: 'registers minions' } as const;
  await using _served = await api.serve(service, [answer]);
  assert.deepEqual(await ask('new-1'), { role: 'none', password: 'of root' });
  assert.deepEqual(await ask('new-1'), { role: 'none', password: 'of root' });
  assert.equal(await ask('bad-1'), 'unknown_minion');
  assert.equal(await ask('lost-1'), 'unknown_minion');
  assert.deepEqual(asked, ['new-1', 'bad-1', 'lost-1']);
});

test('ready, and metrics that tell what masters got', async () => {
  const ready = (await (await fetch(`${merger.url}/readyz`)).json()) as {
    ok: boolean;
    checks: { name: string }[];
  };
  assert.equal(ready.ok, true);
  assert.deepEqual(ready.checks.map(({ name }) => name).sort(), ['bridge', 'nats', 'store']);
  const metrics = await (await fetch(`${merger.url}/metrics`)).text();
  assert.match(metrics, /colonnade_merger_requests_total\{code="ok",service="pillar-merger"\} \d+/u);
  assert.match(metrics, /colonnade_merger_redis_usable\{service="pillar-merger"\} 1/u);
});
