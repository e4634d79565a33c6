import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import {
  BOOTSTRAP_SUB,
  ColonnadeError,
  encode,
  encodeTree,
  kmsEnrol,
  kmsIssueTask,
  kmsMakeEnrolment,
  kmsOpenForMerger,
  kmsOpenForWorkload,
  kmsRenewWorkload,
  kmsRevokeIdentity,
  kmsRotateKey,
  kmsSeal,
  kmsSetMinVersion,
  minionTarget,
  type OpenContext,
  type ResolvedTarget,
  rootTarget,
  TASK_BEAT_SUBJECT,
  taskStateSubject,
  taskTarget,
  taskTemplateTarget,
  type Workload,
  zEnc,
  zTaskBeat,
  zTaskEntry,
} from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import { decodeProtectedHeader } from 'jose';
import { waitFor } from '../../../test/support/wait-for.ts';
import { call, type PreparedKms, prepareKms, rejects, withGrant } from './support.ts';

let kms: PreparedKms;
let api: Bus;
let merger: Bus;
let beats: NodeJS.Timeout | undefined;

before(async () => {
  kms = await prepareKms();
  api = await kms.bus.as('pillar-api');
  merger = await kms.bus.as('pillar-merger');
  startBeats();
  await kms.start({
    KMS_ROOT_KEY_B64: randomBytes(32).toString('base64'),
    KMS_IDENTITY_AUDIENCES: 'kubernetes',
  });
});
after(async () => {
  stopBeats();
  await kms[Symbol.asyncDispose]();
});

/** What pillar-api writes each second. */
function startBeats(): void {
  const beat = () =>
    api.putEntry(TASK_BEAT_SUBJECT, encode(zTaskBeat, { v: 1, count: 1 })).catch(() => false);
  beats = setInterval(() => void beat(), 200);
}
function stopBeats(): void {
  clearInterval(beats);
}
const say = (task: string, live: boolean) =>
  api.putEntry(taskStateSubject(task), encode(zTaskEntry, { v: 1, live, expires_at_ms: null }));

const contextOf = (target: ResolvedTarget, name = 's'): OpenContext => ({
  ...{ tgt_type: target.tgtType, tgt_id: target.tgtId, pillarenv: target.pillarenv, name },
});
async function seal(target: ResolvedTarget, value: Value) {
  const context = contextOf(target);
  const { items } = await api.request(kmsSeal, { items: [{ context, value }] }, call());
  const [item] = items;
  assert.ok(item?.ok, JSON.stringify(item));
  return { context, enc: encodeTree(zEnc, item.result) };
}
async function issue(task: string, template = 'deploy', by = kms.admin.token): Promise<string> {
  const holder = { token: by, sub: BOOTSTRAP_SUB };
  const asked = await withGrant(holder, kmsIssueTask, { task, template });
  return (await api.request(kmsIssueTask, asked, call())).token;
}
const open = (token: string, items: readonly { context: OpenContext; enc: Value }[]) =>
  api.request(kmsOpenForWorkload, { token, items: [...items] }, call());
const waitKnown = (token: string, item: { context: OpenContext; enc: Value }) =>
  waitFor('the KMS to know the task', async () => {
    const answer = await open(token, [item]).catch((thrown: ColonnadeError) => thrown);
    return !(answer instanceof Error);
  });
async function enrolment(workload: Workload, sid: string = randomUUID()) {
  const asked = await kms.granted(kmsMakeEnrolment, { workload, sid, lifetime_s: 600 });
  return api.request(kmsMakeEnrolment, asked, call());
}

describe('a task', () => {
  test('opens its own secrets and what its owner saved of its template, and nobody else’s', async () => {
    await say('t1', true);
    const token = await issue('t1');
    const own = await seal(taskTarget('t1'), 'own');
    await waitKnown(token, own);
    const items = [
      own,
      await seal(taskTemplateTarget('deploy', BOOTSTRAP_SUB), 'saved'),
      await seal(taskTemplateTarget('deploy', 'ann'), 'of another user'),
      await seal(taskTemplateTarget('other', BOOTSTRAP_SUB), 'of another template'),
      await seal(taskTarget('t2'), 'of another task'),
      await seal(minionTarget('web-1', 'm1'), 'of a minion'),
      await seal(rootTarget, 'of everybody'),
      // A context that is not its own, whatever else it says.
      { ...own, context: { ...own.context, tgt_id: 't2' } },
      { ...own, context: { ...own.context, tgt_type: 'root' as const } },
    ];
    const results = (await open(token, items)).items.map((item) => (item.ok ? item.result : item.error.code));
    assert.deepEqual(results.slice(0, 2), ['own', 'saved']);
    assert.ok(
      results.slice(2).every((code) => code === 'kms_refused' || code === 'bad_request'),
      String(results),
    );
  });

  test('that has ended, or is not known, opens nothing and gets no next token', async () => {
    await say('t3', true);
    const token = await issue('t3');
    const own = await seal(taskTarget('t3'), 'own');
    await waitKnown(token, own);
    await say('t3', false);
    await waitFor('its end', async () => {
      const answer = await open(token, [own]).catch((thrown: ColonnadeError) => thrown);
      return answer instanceof ColonnadeError && answer.code === 'unauthorized';
    });
    await rejects(api.request(kmsRenewWorkload, { token }, call()), 'unauthorized');
    await rejects(
      open(await issue('never-made'), [await seal(taskTarget('never-made'), 'x')]),
      'unauthorized',
    );
  });

  test('opens nothing while it is not known which tasks live, and goes on when it is', async () => {
    await say('t4', true);
    const token = await issue('t4');
    const own = await seal(taskTarget('t4'), 'own');
    await waitKnown(token, own);
    stopBeats();
    await waitFor('the silence to count', async () => {
      const answer = await open(token, [own]).catch((thrown: ColonnadeError) => thrown);
      return answer instanceof ColonnadeError && answer.code === 'unavailable';
    });
    await rejects(api.request(kmsRenewWorkload, { token }, call()), 'unavailable');
    startBeats();
    await waitKnown(token, own);
  });

  test('gets an identity only with a grant for it, of somebody who may', async () => {
    await rejects(
      api.request(kmsIssueTask, { grant: 'x', task: 't1', template: 'deploy' }, call()),
      'unauthorized',
    );
    const once = await kms.granted(kmsIssueTask, { task: 't1', template: 'deploy' });
    await rejects(api.request(kmsIssueTask, { ...once, task: 't2' }, call()), 'unauthorized');
    await api.request(kmsIssueTask, once, call());
    await rejects(api.request(kmsIssueTask, once, call()), 'unauthorized');
  });
});

describe('a master', () => {
  test('enrols once, opens what its token opens, and no more when it was taken back', async () => {
    const sid = randomUUID();
    const { token: once } = await enrolment({ kind: 'master', master: 'm1' }, sid);
    const { token, workload } = await api.request(kmsEnrol, { token: once }, call());
    assert.deepEqual({ ...workload }, { kind: 'master', master: 'm1' });
    await rejects(api.request(kmsEnrol, { token: once }, call()), 'unauthorized');
    const mine = await seal(minionTarget('web-1', 'm1'), 'mine');
    const base = await seal(rootTarget, 'base');
    const theirs = await seal(minionTarget('web-1', 'm2'), 'theirs');
    const merge = (master: string) =>
      merger.request(
        kmsOpenForMerger,
        { token, master, minion_id: 'web-1', items: [mine, base, theirs] },
        call(),
      );
    const results = (await merge('m1')).items.map((item) => (item.ok ? item.result : item.error.code));
    assert.deepEqual(results, ['mine', 'base', 'kms_refused']);
    await rejects(merge('m2'), 'unauthorized');
    const direct = (await open(token, [mine, base, theirs])).items.map((item) => item.ok);
    assert.deepEqual(direct, [true, false, false]);
    const { token: minion } = await api.request(kmsRenewWorkload, { token, minion: 'web-1' }, call());
    assert.deepEqual(
      (await open(minion, [mine, base, theirs])).items.map((item) => item.ok),
      [true, false, false],
    );
    await api.request(kmsRevokeIdentity, await kms.granted(kmsRevokeIdentity, { jti: sid }), call());
    for (const one of [token, minion]) await rejects(open(one, [mine]), 'unauthorized');
    await rejects(merge('m1'), 'unauthorized');
    await rejects(api.request(kmsRenewWorkload, { token }, call()), 'unauthorized');
  });

  test('a merge takes no identity but a master’s, and no one-time token is made for a task', async () => {
    const token = await issue('t1');
    const item = await seal(minionTarget('web-1', 'm1'), 'mine');
    await rejects(
      merger.request(kmsOpenForMerger, { token, master: 'm1', minion_id: 'web-1', items: [item] }, call()),
      'unauthorized',
    );
    const task = { kind: 'task', task: 't1', template: 'deploy', owner: 'ann' } as const;
    await rejects(enrolment(task), 'bad_request');
  });
});

test('without a root key there are no identities, and it says why', async () => {
  await using own = await prepareKms();
  await own.start();
  const bus = await own.bus.as('pillar-api');
  const asked = await own.granted(kmsIssueTask, { task: 't1', template: 'deploy' });
  await rejects(bus.request(kmsIssueTask, asked, call()), 'key_not_configured');
});

test('the key changes by age, is published before it signs, and what the one before signed goes on', async () => {
  await using own = await prepareKms();
  const { url } = await own.start({
    ...{ KMS_ROOT_KEY_B64: randomBytes(32).toString('base64'), KMS_KEY_PREPUBLISH_S: '1' },
    KMS_IDENTITY_KEY_MAX_AGE_S: '1',
  });
  const bus = await own.bus.as('pillar-api');
  const workload = { kind: 'master', master: 'm1' } as const;
  const sid = randomUUID();
  const asked = await own.granted(kmsMakeEnrolment, { workload, sid, lifetime_s: 600 });
  const made = await bus.request(kmsMakeEnrolment, asked, call());
  const { token: first } = await bus.request(kmsEnrol, { token: made.token }, call());
  const renew = async () => (await bus.request(kmsRenewWorkload, { token: first }, call())).token;
  const kidOf = (token: string) => decodeProtectedHeader(token).kid;
  const published = async () => {
    const answer = await fetch(`${url}/.well-known/jwks.json`);
    assert.match(answer.headers.get('cache-control') ?? '', /max-age=\d/u);
    return ((await answer.json()) as { keys: { kid: string }[] }).keys.map(({ kid }) => kid);
  };
  const seen = new Set(await published());
  await waitFor('a next key to sign', async () => {
    const now = await published();
    const kid = kidOf(await renew());
    // Whatever signs was published in an earlier look, since it waits a second before it does.
    assert.ok(
      kid !== undefined && (seen.has(kid) || now.includes(kid)),
      'it signs with a key nobody has seen',
    );
    for (const one of now) seen.add(one);
    return kid !== kidOf(first);
  });
  assert.ok((await published()).includes(kidOf(first) ?? ''));
  assert.ok(await renew());
});

test('whoever forged with a key that is barred is out, also with what a newer key signed for him', async () => {
  await using own = await prepareKms();
  const env = { KMS_ROOT_KEY_B64: randomBytes(32).toString('base64'), KMS_KEY_PREPUBLISH_S: '1' };
  await own.start(env);
  const bus = await own.bus.as('pillar-api');
  const workload = { kind: 'master', master: 'm1' } as const;
  const enrolled = async () => {
    const sid = randomUUID();
    const asked = await own.granted(kmsMakeEnrolment, { workload, sid, lifetime_s: 600 });
    const made = await bus.request(kmsMakeEnrolment, asked, call());
    return (await bus.request(kmsEnrol, { token: made.token }, call())).token;
  };
  const renewed = async (token: string, minion?: string) =>
    (await bus.request(kmsRenewWorkload, { token, ...(minion === undefined ? {} : { minion }) }, call()))
      .token;
  const kidOf = (token: string) => decodeProtectedHeader(token).kid;
  const first = await enrolled();
  await bus.request(kmsRotateKey, await own.granted(kmsRotateKey, { name: 'identity' }), call());
  const next = await waitFor('the next key to sign', async () => {
    const token = await renewed(first);
    return kidOf(token) === kidOf(first) ? undefined : token;
  });
  const minion = await renewed(next, 'web-1');
  const after = await enrolled();
  // A second replica, which is told of nothing.
  await own.start(env);
  const barring = await own.granted(kmsSetMinVersion, { name: 'identity', version: 2 });
  await bus.request(kmsSetMinVersion, barring, call());
  for (const token of [next, minion])
    await waitFor('both replicas to refuse', async () => {
      const codes = await Promise.all(
        Array.from({ length: 20 }, () =>
          renewed(token).then(
            () => 'ok',
            ({ code }: ColonnadeError) => code,
          ),
        ),
      );
      return codes.every((code) => code === 'unauthorized');
    });
  const items = [await seal(minionTarget('web-1', 'm1'), 'mine')];
  await rejects(bus.request(kmsOpenForWorkload, { token: minion, items }, call()), 'unauthorized');
  assert.equal(kidOf(await renewed(after)), kidOf(next));
});

test('what it does for workloads is on record, with no token', async () => {
  const text = JSON.stringify(await kms.records(), (_, value) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  for (const name of ['open', 'renew', 'enrol', 'enrolment.make', 'task.issue'])
    assert.ok(text.includes(`"${name}"`), name);
  assert.ok(text.includes('"colonnade:tasks"') && text.includes('"colonnade:masters"'));
  assert.ok(!/eyJ[\w-]{20,}/u.test(text) && !text.includes('cole_'));
});
