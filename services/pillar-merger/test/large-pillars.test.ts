import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import { ColonnadeError, LIMITS, mergerCompile, mergerExplain } from '@colonnade/contracts';
import type { ServiceProcess } from '@colonnade/embedded';
import type { Mutation } from '@colonnade/estate-store';
import { waitFor } from '../../../test/support/wait-for.ts';
import {
  call,
  minionTarget,
  outcomeOf,
  rootTarget,
  startWorld,
  type TestMaster,
  type World,
} from './support.ts';

const ROOT_PILLARS = 30_000;
const MINIONS = Array.from({ length: 8 }, (_, i) => `web-${i}`);

let world: World;
let master: TestMaster;
let hookRunner: Bus;
let operator: Bus;
let merger: ServiceProcess;

before(async () => {
  world = await startWorld();
  master = await world.addMaster('salt-1');
  for (const id of MINIONS) await world.addMinion('salt-1', id);
  const pillars = Array.from({ length: ROOT_PILLARS }, (_, i): Mutation => {
    const record = { pid: randomUUID(), ...rootTarget, isSecret: false };
    return { kind: 'pillar.create', record: { ...record, name: `app-${i}`, value: `value of ${i}` } };
  });
  await world.write(...pillars);
  for (let i = 0; i < 16; i += 1) {
    await world.addPillar(minionTarget('web-7', 'salt-1'), `blob-${i}`, 'x'.repeat(LIMITS.valueBytes - 64));
  }
  merger = await world.startMerger();
  hookRunner = await world.bus.as('hook-runner');
  operator = await world.bus.as('operator');
  await waitFor('an answer', async () => (await ask('web-0')) !== undefined);
});
after(() => world[Symbol.asyncDispose]());

const ask = async (minionId: string) => outcomeOf(await master.client.ask({ minionId, pillarenv: 'base' }));
const compile = (ids: readonly string[]) =>
  hookRunner.request(
    mergerCompile,
    { minions: ids.map((minion_id) => ({ master: 'salt-1', minion_id })) },
    call(60_000),
  );

test('an answer holds as many minions as fit, and asking again for the rest comes to an end', async () => {
  const found = new Map<string, number | string>();
  for (let rest: readonly string[] = MINIONS; rest.length > 0; ) {
    const { items } = await compile(rest);
    assert.ok(items.length >= 1 && items.length < MINIONS.length);
    items.forEach((item, i) => {
      const what = item.ok ? Object.keys(item.result.pillar as object).length : item.error.code;
      found.set(String(rest[i]), what);
    });
    rest = rest.slice(items.length);
  }
  assert.deepEqual(
    [...found],
    MINIONS.map((id) => [id, id === 'web-7' ? 'too_large' : ROOT_PILLARS]),
  );
});

test('a minion that fits no answer has an error that lasts and says how large it is', async () => {
  const [item] = (await compile(['web-7'])).items;
  assert.ok(item?.ok === false);
  assert.equal(new ColonnadeError(item.error.code as 'too_large', '').retryable, false);
  assert.match(item.error.message, /^its 30016 pillars are \d{7} bytes, over the 3670016 that are compiled/u);
});

test('masters are answered while much is compiled', async () => {
  let over = false;
  const storm = Promise.allSettled(Array.from({ length: 12 }, () => compile(MINIONS))).finally(() => {
    over = true;
  });
  let answers = 0;
  do {
    const pillar = (await ask('web-0')) as object;
    assert.equal(Object.keys(pillar).length, ROOT_PILLARS);
    answers += 1;
  } while (!over);
  const outcomes = await storm;
  assert.ok(outcomes.every(({ status }) => status === 'fulfilled'));
  assert.ok(answers > 1);
});

test('an explanation that fits no message is refused before it is made', async () => {
  const asked = { master: 'salt-1', minion_id: 'web-0', pillarenv: 'base' };
  for (const omit_values of [false, true]) {
    await assert.rejects(operator.request(mergerExplain, { ...asked, omit_values }, call()), {
      code: 'too_large',
      message: /^an explanation of 30000 keys takes \d{7} bytes$/u,
    });
  }
});

test('what all of that took of memory is not kept', async () => {
  const rss = async () => {
    const status = await readFile(`/proc/${merger.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/u.exec(status)?.[1]) / 1024;
  };
  await waitFor('memory to come back', async () => (await rss()) < 800);
});
