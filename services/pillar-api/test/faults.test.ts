import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSqliteReader } from '@colonnade/estate-store';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ApiWorld, assertProblem, auditRecords, plain, sendPlain, startWorld } from './support.ts';

const SECRET = 'fail-closed-secret';
const MIB = 1024 * 1024;

describe('when a neighbour is away, nothing is shown and nothing is changed', () => {
  let world: ApiWorld;
  let pid: unknown;

  before(async () => {
    world = await startWorld({ env: { REQUEST_BUDGET_MS: '1500', OUTBOX_MAX_AGE_MS: '1000' } });
    const made = await secret('kept');
    assert.equal(made.status, 201);
    pid = plain(made).pid;
  });
  after(() => world[Symbol.asyncDispose]());

  const secret = (name: string) =>
    sendPlain(world.admin, 'POST', '/pillars', { tgt_type: 'root', name, value: SECRET, is_secret: true });
  const open = (name: string) =>
    sendPlain(world.admin, 'POST', '/pillars', { tgt_type: 'root', name, value: 1 });
  const reveal = () => world.admin.send('POST', `/pillars/${pid}/reveal`);
  const ready = async () => (await fetch(new URL('/readyz', world.api.url))).status;
  const tick = async () => {
    await using reader = await openSqliteReader({ path: world.storePath });
    const none = { since: undefined, scopes: [], collections: false, masters: [], minions: [] };
    return (await reader.snapshot(none)).clock.tick;
  };
  const sizeAudit = async (maxAuditBytes: number) => {
    const provisioner = await world.bus.as('provisioner');
    await provisioner.provisionStreams({ maxEventsBytes: 16 * MIB, maxAuditBytes, replicas: 1 });
  };

  test('without crypto-kms secrets, tokens and keys are 503; the rest goes on', async () => {
    const { id } = await world.tokenOf(['secret-reader']);
    await world.kms.kill('SIGKILL');
    const before = await tick();
    for (const answer of [
      await secret('unsealed'),
      await reveal(),
      await sendPlain(world.admin, 'POST', '/tokens', { sub: 'x', roles: ['admin'] }),
      await sendPlain(world.admin, 'POST', '/masters', { id: 'm1' }),
      await world.admin.send('DELETE', `/tokens/${id}`),
    ]) {
      assertProblem(answer, 503, 'kms_unavailable');
      assert.ok(answer.headers.get('retry-after'));
      assert.ok(!JSON.stringify(plain(answer)).includes(SECRET));
    }
    assert.equal(await tick(), before);
    assert.equal((await open('meanwhile')).status, 201);
    assert.equal(
      (await sendPlain(world.admin, 'POST', '/tokens', { sub: 'x', roles: ['viewer'] })).status,
      201,
    );
    await world.kms.restart();
    await waitFor('the KMS to be back', async () => (await reveal()).status === 200);
  });

  test('when AUDIT takes no more, what is recorded is refused before it happens', async () => {
    await sizeAudit(1);
    const before = await tick();
    const viewer = await world.admin.send('GET', '/masters');
    assert.equal(viewer.status, 200);
    const denied = await fetch(new URL('/masters', world.api.url));
    assert.equal(denied.status, 500);
    for (const answer of [
      await reveal(),
      await open('unrecorded'),
      await secret('unrecorded'),
      await world.admin.send('GET', '/tokens'),
    ]) {
      assertProblem(answer, 500, 'audit_unavailable');
      assert.ok(!JSON.stringify(plain(answer)).includes(SECRET));
      assert.equal(answer.headers.get('location'), null);
    }
    assert.equal(await tick(), before);
    await sizeAudit(16 * MIB);
    assert.equal(plain(await reveal()).value, SECRET);
  });

  test('without NATS reads go on, the rest is refused at once, and readiness says so', async () => {
    await world.bus.nats.kill('SIGKILL');
    await waitFor('readiness to end', async () => (await ready()) === 503);
    const before = await tick();
    const startedMs = performance.now();
    for (const answer of [await reveal(), await open('offline'), await secret('offline')]) {
      assertProblem(answer, 500, 'audit_unavailable');
      assert.equal(answer.headers.get('retry-after'), '1');
      assert.ok(!JSON.stringify(plain(answer)).includes(SECRET));
    }
    assert.ok(performance.now() - startedMs < 1500, 'it waited for the bus');
    assert.equal(await tick(), before);
    assert.equal((await world.admin.send('GET', `/pillars/${pid}`)).status, 200);
    assert.equal((await fetch(new URL('/healthz', world.api.url))).status, 200);
    await world.bus.nats.restart();
    await waitFor(
      'everything to be back',
      async () => (await reveal()).status === 200 && (await ready()) === 200,
    );
  });

  test('a NATS that hangs behind an open connection ends readiness, which says so', async () => {
    await world.bus.nats.kill('SIGSTOP');
    try {
      await waitFor('readiness to name NATS', async () => {
        const text = await (await fetch(new URL('/readyz', world.api.url))).text();
        return text.includes('NATS does not answer within');
      });
    } finally {
      await world.bus.nats.kill('SIGCONT');
    }
    await waitFor('readiness', async () => (await ready()) === 200);
  });

  test('events that cannot leave wait, readiness ends, and all is well when they can', async () => {
    const provisioner = await world.bus.as('provisioner');
    await provisioner.provisionStreams({ maxEventsBytes: 1, maxAuditBytes: 16 * MIB, replicas: 1 });
    assert.equal((await open('waiting')).status, 201);
    await waitFor('the backlog to show', async () => (await ready()) === 503);
    await sizeAudit(16 * MIB);
    await waitFor('the backlog to be gone', async () => (await ready()) === 200);
  });

  test('a minion that comes while its master is deleted: 409, which says that the tokens are revoked', async () => {
    const made = await sendPlain(world.admin, 'POST', '/masters', { id: 'leaving' });
    const recorded = (await auditRecords(world.bus)).length;
    await world.kms.kill('SIGSTOP');
    const headers = { 'if-match': made.headers.get('etag') ?? '' };
    const underWay = world.admin.send('DELETE', '/masters/leaving', undefined, headers);
    await waitFor('the request to have begun', async () => (await auditRecords(world.bus)).length > recorded);
    const minion = { collections: [] };
    const none = { 'if-none-match': '*' };
    const put = await sendPlain(world.admin, 'PUT', '/masters/leaving/minions/late', minion, none);
    await world.kms.kill('SIGCONT');
    assert.equal(put.status, 201);
    const answer = await underWay;
    assertProblem(answer, 409, 'conflict');
    assert.match(String(plain(answer).detail), /tokens are revoked.*POST \/masters/u);
  });

  test('requests under way at SIGTERM are answered', async () => {
    const recorded = (await auditRecords(world.bus)).length;
    await world.kms.kill('SIGSTOP');
    const underWay = secret('last');
    await waitFor('the request to have begun', async () => (await auditRecords(world.bus)).length > recorded);
    const startedMs = performance.now();
    const gone = world.api.kill('SIGTERM');
    await world.kms.kill('SIGCONT');
    assert.equal((await underWay).status, 201);
    await gone;
    assert.ok(performance.now() - startedMs < 8000, 'it had to be ended by force');
    await world.api.restart();
    assert.equal((await world.admin.send('GET', `/pillars/${plain(await underWay).pid}`)).status, 200);
  });

  test('without a KEK a secret is 500 PillarEncryptionKeyNotConfigured (seed 000)', async () => {
    await using own = await startWorld({ kmsEnv: { PILLARS_KEK_B64: '', KMS_ROOT_KEY_B64: '' } });
    const answer = await sendPlain(own.admin, 'POST', '/pillars', {
      tgt_type: 'root',
      name: 's',
      value: SECRET,
      is_secret: true,
    });
    assertProblem(answer, 500, 'key_not_configured');
    assert.equal(plain(answer).title, 'PillarEncryptionKeyNotConfigured');
  });
});
