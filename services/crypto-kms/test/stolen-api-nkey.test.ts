import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import {
  BOOTSTRAP_SUB,
  collectionTarget,
  deriveGrantKey,
  encode,
  encodeTree,
  kmsDeleteReader,
  kmsDestroyKey,
  kmsIssueMaster,
  kmsIssueTask,
  kmsMakeEnrolment,
  kmsOpenForApi,
  kmsOpenForWorkload,
  kmsPutReader,
  kmsRenewWorkload,
  kmsReseal,
  kmsRevokeIdentity,
  kmsRotateKey,
  kmsSeal,
  kmsSetMinVersion,
  kmsUndestroyKey,
  kmsVerifyForApi,
  type ResolvedTarget,
  rootTarget,
  type Scope,
  TASK_BEAT_SUBJECT,
  taskStateSubject,
  taskTarget,
  zEnc,
  zTaskBeat,
  zTaskEntry,
} from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import { waitFor } from '../../../test/support/wait-for.ts';
import {
  call,
  makeApiToken,
  type PreparedKms,
  prepareKms,
  rejects,
  signGrant,
  withGrant,
} from './support.ts';

/** What whoever stole the NATS nkey of pillar-api reaches here, beside honest services; see SECURITY.md. */
describe('a stolen nkey of pillar-api', () => {
  let kms: PreparedKms;
  let thief: Bus;
  let beats: NodeJS.Timeout;
  before(async () => {
    kms = await prepareKms();
    thief = await kms.bus.as('pillar-api');
    // As pillar-api does, or the thief for it.
    const beat = encode(zTaskBeat, { v: 1, count: 1 });
    beats = setInterval(() => void thief.putEntry(TASK_BEAT_SUBJECT, beat).catch(() => false), 200);
    await kms.start({ KMS_ROOT_KEY_B64: randomBytes(32).toString('base64') });
  });
  after(async () => {
    clearInterval(beats);
    await kms[Symbol.asyncDispose]();
  });

  const say = (task: string, live: boolean) =>
    thief.putEntry(taskStateSubject(task), encode(zTaskEntry, { v: 1, live, expires_at_ms: null }));
  async function seal(target: ResolvedTarget, name = 's') {
    const { tgtType: tgt_type, tgtId: tgt_id, pillarenv } = target;
    const context = { tgt_type, tgt_id, pillarenv, name };
    const { items } = await thief.request(kmsSeal, { items: [{ context, value: `of ${name}` }] }, call());
    assert.ok(items[0]?.ok, 'it seals what it likes');
    return { context, enc: encodeTree(zEnc, items[0].result) };
  }
  type Sealed = { context: Awaited<ReturnType<typeof seal>>['context']; enc: Value };
  const revealWith = async (token: string, sub: string, sealed: Sealed) =>
    (await thief.request(kmsOpenForApi, await withGrant({ token, sub }, kmsOpenForApi, sealed), call()))
      .value;
  const issueWith = async (token: string, sub: string, task: string) => {
    const asked = await withGrant({ token, sub }, kmsIssueTask, { task, template: 'deploy' });
    return (await thief.request(kmsIssueTask, asked, call())).token;
  };
  const openWith = async (token: string, sealed: Sealed) => {
    const { items } = await thief.request(kmsOpenForWorkload, { token, items: [sealed] }, call());
    return items[0]?.ok ? items[0].result : items[0]?.error.code;
  };
  /** An API token as somebody has it, registered by the admin. */
  async function tokenOf(sub: string, rights: ('reveal' | 'task')[], reveal_scopes?: Scope[]) {
    const { token, id: token_id } = makeApiToken();
    const message = {
      ...{ token_id, sub, rights, grant_key_hex: deriveGrantKey(token).toString('hex'), expires_at_ms: null },
      ...(reveal_scopes === undefined ? {} : { reveal_scopes }),
    };
    await thief.request(kmsPutReader, await kms.granted(kmsPutReader, message), call());
    return token;
  }

  test('without a grant has nothing revealed, moved, made, registered or changed', async () => {
    const { context, enc } = await seal(rootTarget);
    const forged = await signGrant(makeApiToken().token, { sub: BOOTSTRAP_SUB, act: 'reveal', res: 'x' });
    const version = { name: 'pillars', version: 1 };
    const reader = { token_id: 'a'.repeat(16), sub: 'eve', rights: ['reveal' as const], expires_at_ms: null };
    for (const grant of ['x', forged]) {
      const asks = [
        () => thief.request(kmsOpenForApi, { grant, context, enc }, call()),
        () => thief.request(kmsVerifyForApi, { grant, context, enc }, call()),
        () => thief.request(kmsReseal, { grant, items: [{ from: context, to: context, enc }] }, call()),
        () => thief.request(kmsIssueMaster, { grant, master: 'm1', lifetime_s: 600 }, call()),
        () => thief.request(kmsRevokeIdentity, { grant, jti: 'x'.repeat(16) }, call()),
        () => thief.request(kmsPutReader, { grant, ...reader, grant_key_hex: '0'.repeat(64) }, call()),
        () => thief.request(kmsDeleteReader, { grant, token_id: 'x' }, call()),
        () => thief.request(kmsRotateKey, { grant, name: 'pillars' }, call()),
        () => thief.request(kmsSetMinVersion, { grant, ...version }, call()),
        () => thief.request(kmsDestroyKey, { grant, ...version }, call()),
        () => thief.request(kmsUndestroyKey, { grant, ...version }, call()),
        () => thief.request(kmsIssueTask, { grant, task: 't1', template: 'deploy' }, call()),
        () =>
          thief.request(
            kmsMakeEnrolment,
            { grant, workload: { kind: 'master', master: 'm1' }, sid: randomUUID(), lifetime_s: 60 },
            call(),
          ),
      ];
      for (const ask of asks) await rejects(ask(), 'unauthorized');
    }
  });

  test('without the token of a task opens nothing of it, whatever it says of which tasks live', async () => {
    await say('t1', true);
    const sealed = await seal(taskTarget('t1'));
    for (const token of ['x', 'a.b.c']) {
      await rejects(openWith(token, sealed), 'unauthorized');
      await rejects(thief.request(kmsRenewWorkload, { token }, call()), 'unauthorized');
    }
  });

  test('with the token of a task that has ended opens that task’s secrets, and no other’s, by saying that it lives', async () => {
    await say('ended', true);
    const token = await issueWith(kms.admin.token, BOOTSTRAP_SUB, 'ended');
    const [own, other] = [await seal(taskTarget('ended')), await seal(taskTarget('t1'))];
    const answer = (sealed: Sealed) => openWith(token, sealed).catch(({ code }: { code: string }) => code);
    await waitFor('it to open', async () => (await answer(own)) === 'of s');
    await say('ended', false);
    await waitFor('its end', async () => (await answer(own)) === 'unauthorized');
    await say('ended', true);
    await waitFor('the lie to be believed', async () => (await answer(own)) === 'of s');
    assert.equal(await answer(other), 'kms_refused');
    const { token: next } = await thief.request(kmsRenewWorkload, { token }, call());
    assert.equal(await openWith(next, own), 'of s');
    await say('ended', false);
    await waitFor('its end', async () => (await answer(own)) === 'unauthorized');
    await rejects(thief.request(kmsRenewWorkload, { token: next }, call()), 'unauthorized');
  });

  test('with the token of a scoped secret-reader opens what its scopes hold, as far as they need no estate', async () => {
    const scopes = [{ tgt_types: ['root' as const], name_prefixes: ['db-'] }, { collections: ['c1'] }];
    const token = await tokenOf('sam', ['reveal'], scopes);
    assert.equal(await revealWith(token, 'sam', await seal(rootTarget, 'db-a')), 'of db-a');
    await rejects(revealWith(token, 'sam', await seal(rootTarget, 'other')), 'forbidden');
    await rejects(revealWith(token, 'sam', await seal(taskTarget('t1'), 'db-a')), 'forbidden');
    // Which collections lie below c1 only the estate knows: of collections it is all of them.
    for (const id of ['c1', 'c2'])
      assert.equal(await revealWith(token, 'sam', await seal(collectionTarget(id, 'ann'))), 'of s');
  });

  test('with a user’s token, as pillar-api has while it is used, reveals all in its scopes until that token goes', async () => {
    const token = await tokenOf('rita', ['reveal']);
    const secrets = [
      await seal(rootTarget),
      await seal(taskTarget('t1')),
      await seal(collectionTarget('c1', 'ann')),
    ];
    for (const sealed of secrets) assert.equal(await revealWith(token, 'rita', sealed), 'of s');
    const id = token.split('_')[1] ?? '';
    await thief.request(kmsDeleteReader, await kms.granted(kmsDeleteReader, { token_id: id }), call());
    for (const sealed of secrets) await rejects(revealWith(token, 'rita', sealed), 'unauthorized');
    // With an admin's it has a reader of its own, which is there when that admin has gone.
    const own = await tokenOf('mallory', ['reveal']);
    for (const sealed of secrets) assert.equal(await revealWith(own, 'mallory', sealed), 'of s');
  });

  test('with an editor’s token makes no identity of a task, and with one that may not reveal tasks neither', async () => {
    await rejects(issueWith(await tokenOf('eve', ['task']), 'eve', 't1'), 'forbidden');
    const scoped = await tokenOf('sue', ['reveal', 'task'], [{ tgt_types: ['root'] }]);
    await rejects(issueWith(scoped, 'sue', 't1'), 'forbidden');
    const tasks = await tokenOf('tim', ['reveal', 'task'], [{ tgt_types: ['task'] }]);
    assert.match(await issueWith(tasks, 'tim', 't1'), /^eyJ/u);
  });
});
