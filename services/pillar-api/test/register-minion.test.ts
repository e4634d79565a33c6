import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import { ColonnadeError, estateRegisterMinion, startCall } from '@colonnade/contracts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ApiWorld, auditRecords, plain, readStream, sendPlain, startWorld } from './support.ts';

describe('a merger registers a minion it meets', () => {
  let world: ApiWorld;
  let merger: Bus;
  const tokens = new Map<string, { token: string; jti: string }>();

  before(async () => {
    world = await startWorld();
    merger = await world.bus.as('pillar-merger');
    for (const [id, on_unknown_minion] of [
      ['open', 'register'],
      ['closed', 'refuse'],
    ]) {
      const made = plain(await sendPlain(world.admin, 'POST', '/masters', { id, on_unknown_minion }));
      tokens.set(String(id), made.token as { token: string; jti: string });
    }
  });
  after(() => world[Symbol.asyncDispose]());

  const register = (master: string, minion_id: string, token = tokens.get(master)?.token ?? 'none') =>
    merger.request(estateRegisterMinion, { token, master, minion_id }, startCall(5000));
  const rejects = (work: Promise<unknown>, code: string) =>
    assert.rejects(work, (thrown) => thrown instanceof ColonnadeError && thrown.code === code);
  const exists = async (master: string, id: string) =>
    (await world.admin.send('GET', `/masters/${master}/minions/${id}`)).status === 200;

  test('once, however often and by however many at the same time it is asked', async () => {
    await Promise.all(Array.from({ length: 10 }, () => register('open', 'new-1')));
    await register('open', 'new-1');
    const got = plain(await world.admin.send('GET', '/masters/open/minions/new-1'));
    assert.deepEqual([got.collections, got.registered_by], [[], 'pillar-merger']);
    const about = async () =>
      (await readStream(world.bus, 'EVENTS')).filter((m) => m.data.includes('/masters/open/minions/new-1'));
    await waitFor('its event', async () => (await about()).length > 0);
    await register('open', 'new-2');
    await waitFor('a later event', async () =>
      (await readStream(world.bus, 'EVENTS')).some((m) => m.data.includes('/masters/open/minions/new-2')),
    );
    assert.equal((await about()).length, 1);
  });

  test('on record before it happens and before it is answered, and not at all without a record', async () => {
    await register('open', 'recorded');
    await register('open', 'recorded');
    const records = (await auditRecords(world.bus)).filter((r) => r.objectRef?.name === 'recorded');
    const what = { verb: 'update', user: 'master:open', in: 'open', of: 'minions' };
    assert.deepEqual(
      records.map(({ stage, verb, user, objectRef, responseStatus }) => [
        stage,
        { verb, user: user.username, in: objectRef?.namespace, of: objectRef?.resource },
        responseStatus?.code,
      ]),
      [
        ['RequestReceived', what, undefined],
        ['ResponseComplete', what, 200],
      ],
    );
    const provisioner = await world.bus.as('provisioner');
    const sizes = { maxEventsBytes: 16 * 1024 * 1024, replicas: 1 };
    await provisioner.provisionStreams({ ...sizes, maxAuditBytes: 1 });
    await rejects(register('open', 'unrecorded'), 'bus_unavailable');
    await provisioner.provisionStreams({ ...sizes, maxAuditBytes: 16 * 1024 * 1024 });
    assert.ok(!(await exists('open', 'unrecorded')));
  });

  test('not for a master that takes only registered ones, nor for one that does not exist', async () => {
    await rejects(register('closed', 'new'), 'unknown_minion');
    assert.ok(!(await exists('closed', 'new')));
    await rejects(register('nowhere', 'new', tokens.get('open')?.token), 'unknown_master');
    const put = await sendPlain(
      world.admin,
      'PUT',
      '/masters/closed/minions/known',
      { collections: [] },
      { 'if-none-match': '*' },
    );
    assert.equal(put.status, 201);
    await register('closed', 'known');
  });

  test('not with the token of another master, a forged, broken or revoked one', async () => {
    const good = tokens.get('open')?.token ?? '';
    const [head, body, signature] = good.split('.');
    await rejects(register('open', 'forged', tokens.get('closed')?.token), 'unauthorized');
    await rejects(register('open', 'forged', 'not a token'), 'unauthorized');
    const forged = `${signature?.startsWith('A') ? 'B' : 'A'}${signature?.slice(1)}`;
    await rejects(register('open', 'forged', `${head}.${body}.${forged}`), 'unauthorized');
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    await rejects(register('open', 'forged', `${none}.${body}.`), 'unauthorized');
    const second = plain(await world.admin.send('POST', '/masters/open/tokens')) as {
      token: string;
      jti: string;
    };
    await register('open', 'by-second', second.token);
    assert.equal((await world.admin.send('DELETE', `/masters/open/tokens/${second.jti}`)).status, 204);
    await rejects(register('open', 'revoked', second.token), 'unauthorized');
    assert.ok(!(await exists('open', 'forged')));
    assert.ok(!(await exists('open', 'revoked')));
  });

  test('not without bound: neither many nor fast, and its neighbours go on', async () => {
    await using own = await startWorld({ env: { MINIONS_PER_MASTER: '3', MINIONS_PER_MINUTE: '5' } });
    const [first, second] = await Promise.all(
      ['m1', 'm2'].map(async (id) => {
        const made = plain(await sendPlain(own.admin, 'POST', '/masters', { id })) as {
          token: { token: string };
        };
        return made.token.token;
      }),
    );
    const bus = await own.bus.as('pillar-merger');
    const ask = (master: string, minion_id: string, token = '') =>
      bus.request(estateRegisterMinion, { token, master, minion_id }, startCall(5000));
    for (const id of ['a', 'b', 'c']) await ask('m1', id, first);
    await rejects(ask('m1', 'd', first), 'forbidden');
    await rejects(ask('m1', 'e', first), 'forbidden');
    await rejects(ask('m1', 'f', first), 'rate_limited');
    await ask('m1', 'a', first);
    await ask('m2', 'a', second);
    const put = (id: string) =>
      sendPlain(own.admin, 'PUT', `/masters/m1/minions/${id}`, { collections: [] }, { 'if-none-match': '*' });
    assert.equal((await put('d')).status, 201, 'an operator may');
    const listed = plain(await own.admin.send('GET', '/masters/m1/minions'));
    assert.equal((listed.items as unknown[]).length, 4);
  });

  test('bad input gets its code in the micro error headers', async () => {
    const connection = await world.bus.raw('pillar-merger');
    const ask = async (text: string | Uint8Array) => {
      const answer = await connection.request(estateRegisterMinion.subject, text, { timeout: 5000 });
      return [answer.headers?.get('Nats-Service-Error-Code'), answer.headers?.get('Nats-Service-Error')];
    };
    const bad = ['400', 'bad_request'];
    const body = (extra: string) => `{"token":"x","master":"open"${extra}}`;
    assert.deepEqual(await ask('not json'), bad);
    assert.deepEqual(await ask(''), bad);
    assert.deepEqual(await ask(new Uint8Array([0xff])), bad);
    assert.deepEqual(await ask(body('')), bad);
    assert.deepEqual(await ask(body(',"minion_id":"a;b"')), bad);
    assert.deepEqual(await ask(body(',"minion_id":"a\\u0000"')), bad);
    assert.deepEqual(await ask(body(',"minion_id":"a","minion_id":"b"')), bad);
    assert.deepEqual(await ask(body(',"minion_id":"a","more":1')), bad);
    assert.deepEqual(await ask(body(`,"minion_id":${'['.repeat(100)}${']'.repeat(100)}`)), bad);
  });
});
