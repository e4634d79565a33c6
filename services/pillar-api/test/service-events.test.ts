import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { connectInspector, DONE } from '@colonnade/bus';
import {
  decode,
  EVENTS_DEAD_STREAM,
  LIMITS,
  SERVICE_EVENTS_STREAM,
  serviceHooksConsumer,
  WORKLOAD_LIFETIME_S,
  zCloudEvent,
} from '@colonnade/contracts';
import { createApiClient } from '@colonnade/embedded';
import { decodeJwt } from 'jose';
import { tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { allRoutes } from '../src/routes/index.ts';
import {
  type ApiWorld,
  assertProblem,
  auditRecords,
  etagOfAnswer,
  plain,
  readStream,
  sendPlain,
  startWorld,
} from './support.ts';

const MIB = 1024 * 1024;
const CANARY = 'canary-4711';
const ORDER = { type: 'object', required: ['total'], properties: { total: { type: 'integer' } } };
/** All bodies on record. */
const POLICY = `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: RequestResponse
`;

describe('services outside', () => {
  let world: ApiWorld;
  const dir = tempDir('service-events');

  before(async () => {
    const file = path.join((await dir).path, 'policy.yaml');
    await writeFile(file, POLICY);
    world = await startWorld({
      env: { DENIALS_PER_MINUTE: '1000', AUDIT_POLICY_FILE: file, REQUEST_BUDGET_MS: '1500' },
      kmsEnv: { KMS_IDENTITY_AUDIENCES: 'kubernetes' },
    });
    await register('shop', [{ type: 'order.placed', schema: ORDER }, { type: 'order.paid' }]);
    await register('mill', [{ type: 'flour' }]);
  });
  after(async () => {
    await world[Symbol.asyncDispose]();
    await (await dir)[Symbol.asyncDispose]();
  });

  const as = (token: string, url = world.api.url) => createApiClient(url, token);
  const register = async (id: string, types: object[]) => {
    const made = await sendPlain(world.admin, 'POST', '/services', { id, types });
    assert.equal(made.status, 201, JSON.stringify(plain(made)));
  };
  const enrolment = async (service: string) =>
    plain(await world.admin.call('POST', `/services/${service}/enrolments`)) as { id: string; token: string };
  const enrol = (once: string) => as(once).send('POST', '/identity/enrol');
  const identity = async (service = 'shop') => {
    const { id, token: once } = await enrolment(service);
    return { id, token: String(plain(await enrol(once)).token) };
  };
  const publish = (token: string, event: object, url = world.api.url) =>
    sendPlain(as(token, url), 'POST', '/events', event);
  const published = async () =>
    (await readStream(world.bus, SERVICE_EVENTS_STREAM)).map(({ subject, data }) => ({
      subject,
      event: decode(zCloudEvent, data),
    }));
  const letters = async (service: string) => {
    await using inspector = await connectInspector({
      ...{ servers: world.bus.nats.url, nkeySeed: world.bus.nkeySeedOf('operator'), name: 'test' },
      logger: { info: () => {}, warn: () => {}, error: () => {} },
    });
    const all = await Array.fromAsync(inspector.deadLetters(EVENTS_DEAD_STREAM));
    return all.filter(({ of }) => of === service).map(({ letter }) => letter);
  };
  const textOf = ({ payload_b64 }: { payload_b64: string }) =>
    Buffer.from(payload_b64, 'base64').toString('utf8');

  test('a host enrols once, is its service for a quarter of an hour at most, and renews', async () => {
    const { id, token: once } = await enrolment('shop');
    const answers = await Promise.all([enrol(once), enrol(once)]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 401]);
    assertProblem(await enrol(once), 401, 'unauthorized');
    const won = plain(answers.find(({ status }) => status === 201) ?? assert.fail());
    assert.deepEqual(won.workload, { kind: 'service', service: 'shop' });
    const claims = decodeJwt(String(won.token));
    assert.deepEqual([claims.sub, claims.sid], ['service:shop', id]);
    assert.ok(Number(claims.exp) - Number(claims.iat) <= WORKLOAD_LIFETIME_S);
    const renewed = await as(String(won.token)).send('POST', '/identity/renew');
    assert.equal(plain(await as(String(plain(renewed).token)).send('GET', '/identity')).sub, 'service:shop');
    const shown = plain(await world.admin.send('GET', '/services/shop'));
    assert.ok((shown.enrolment_ids as string[]).includes(id));
  });

  test('what it publishes stands in its stream as a CloudEvent, once, however often it is sent', async () => {
    const { id: enrolled, token } = await identity();
    const event = { id: 'o-1', type: 'order.placed', subject: '/orders/1', data: { total: 42 } };
    const first = await publish(token, event);
    assert.deepEqual([first.status, plain(first)], [201, { id: 'o-1', duplicate: false }]);
    const other = (await identity()).token;
    const again = await Promise.all([publish(token, event), publish(other, event)]);
    for (const answer of again)
      assert.deepEqual([answer.status, plain(answer)], [200, { id: 'o-1', duplicate: true }]);
    // The same id of another service is another event.
    assert.equal((await publish((await identity('mill')).token, { id: 'o-1', type: 'flour' })).status, 201);
    const found = (await published()).filter(({ event: { id } }) => id === 'o-1');
    assert.deepEqual(
      found.map(({ subject, event: { source } }) => [subject, source]),
      [
        ['colonnade.events-external.v1.shop.order.placed', 'urn:colonnade:service:shop'],
        ['colonnade.events-external.v1.mill.flour', 'urn:colonnade:service:mill'],
      ],
    );
    const { time, ...stored } = found[0]?.event ?? assert.fail();
    assert.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000);
    assert.deepEqual(
      { ...stored, data: { ...(stored.data as object) } },
      {
        ...{ specversion: '1.0', id: 'o-1', source: 'urn:colonnade:service:shop', type: 'order.placed' },
        ...{ subject: '/orders/1', datacontenttype: 'application/json', clock: '0', incarnation: enrolled },
        data: { total: 42n },
      },
    );
  });

  test('a consumer sees it once', async () => {
    const { token } = await identity();
    for (let i = 0; i < 3; i += 1) await publish(token, { id: 'once', type: 'order.paid' });
    await publish(token, { id: 'last', type: 'order.paid' });
    const seen: string[] = [];
    const stop = new AbortController();
    const reader = await world.bus.as('hook-runner');
    const reading = reader.consume(
      serviceHooksConsumer,
      {
        pull: () => ({ maxMessages: 10, maxBytes: MIB, waitMs: 200, fillMs: 0 }),
        confirm: true,
        onFailure: () => {},
        handle: async (batch) => {
          seen.push(...batch.map(({ payload }) => decode(zCloudEvent, payload).id));
          return batch.map(() => DONE);
        },
      },
      stop.signal,
    );
    await waitFor('the last event', async () => seen.includes('last'));
    stop.abort();
    await reading;
    assert.equal(seen.filter((id) => id === 'once').length, 1);
  });

  test('what is of no type of its own, or not as its schema has it, is refused and a dead letter', async () => {
    const { token } = await identity();
    const before = (await published()).length;
    const cases = [
      [{ id: 'x', type: 'flour', data: 1 }, 403, 'forbidden', 'type', 'type_refused'],
      [{ id: 'x', type: 'order', data: 1 }, 403, 'forbidden', 'type', 'type_refused'],
      [{ id: 'x', type: 'order.placed' }, 422, 'unprocessable', 'data', 'schema_refused'],
      [
        ...[{ id: 'x', type: 'order.placed', data: { total: CANARY } }, 422, 'unprocessable'],
        ...['data.total', 'schema_refused'],
      ],
      [{ id: '', type: 'order.paid' }, 422, 'unprocessable', 'id', 'not_an_event'],
      [{ type: 'order.paid' }, 422, 'unprocessable', 'id', 'not_an_event'],
      [{ id: 'x', type: 'order.>' }, 422, 'unprocessable', 'type', 'not_an_event'],
      [{ id: 'x', type: 'order.paid', time: 'today' }, 422, 'unprocessable', 'time', 'not_an_event'],
      [{ id: 'x', type: 'order.paid', subject: 'a\0b' }, 422, 'unprocessable', 'subject', 'not_an_event'],
      [{ id: 'x', type: 'order.paid', extra: 1 }, 422, 'unprocessable', 'extra', 'not_an_event'],
      [
        { id: 'x', type: 'order.paid', data: 'x'.repeat(LIMITS.serviceEventBytes) },
        ...[413, 'too_large', 'data', 'too_large'],
      ],
    ] as unknown as readonly (readonly [object, number, string, string, string])[];
    const ids: (string | null)[] = [];
    for (const [event, status, code, field] of cases) {
      const answer = await publish(token, event);
      assertProblem(answer, status, code, field);
      assert.ok(!JSON.stringify(plain(answer)).includes(CANARY));
      ids.push(answer.headers.get('audit-id'));
    }
    assert.equal((await published()).length, before);
    const found = await letters('shop');
    assert.deepEqual(
      found.map(({ reason }) => reason),
      cases.map(([, , , , reason]) => reason),
    );
    assert.deepEqual(
      found.map(({ audit_id }) => audit_id),
      ids,
    );
    const [first, , , fourth] = found;
    assert.equal(first?.subject, 'colonnade.events-external.v1.shop.flour');
    assert.equal(fourth?.detail, 'data.total: must be integer');
    assert.deepEqual(JSON.parse(textOf(fourth ?? assert.fail())), cases[3]?.[0]);
    for (const letter of found) assert.ok(textOf(letter).length <= LIMITS.serviceEventDeadBytes);
    // Again at once: no further letter.
    assertProblem(await publish(token, cases[0]?.[0] ?? {}), 403, 'forbidden');
    assert.equal((await letters('shop')).length, cases.length);
  });

  test('where a schema marks a secret, no letter of its service has any data', async () => {
    const schema = { properties: { pin: { type: 'integer', writeOnly: true } } };
    await register('bank', [{ type: 'paid', schema }, { type: 'seen' }]);
    const { token } = await identity('bank');
    for (const event of [
      { id: 'b1', type: 'paid', data: { pin: CANARY } },
      { id: 'b2', type: 'padi', data: { pin: CANARY } },
      { id: 'b3', type: 'seen', dta: CANARY },
      { id: { pin: CANARY }, type: 'seen' },
    ])
      assert.ok([403, 422].includes((await publish(token, event)).status));
    const found = await letters('bank');
    assert.deepEqual(
      found.map((letter) => JSON.parse(textOf(letter))),
      [{ id: 'b1', type: 'paid' }, { id: 'b2', type: 'padi' }, { id: 'b3', type: 'seen' }, { type: 'seen' }],
    );
    assert.ok(!JSON.stringify(found).includes(CANARY));
  });

  test('it may use no route but its own', async () => {
    const { token } = await identity();
    const own = new Set(['GET /identity', 'POST /identity/renew', 'POST /events']);
    for (const { method, url } of allRoutes({} as never)) {
      const answer = await as(token).send(method, url.replace(/:[a-z_]+/gu, 'nothing'));
      const name = `${method} ${url}`;
      if (own.has(name)) assert.ok([200, 201, 400].includes(answer.status), `${name}: ${answer.status}`);
      else assert.equal(answer.status, 403, name);
    }
    const renew = (body: object) => sendPlain(as(token), 'POST', '/identity/renew', body);
    assertProblem(await renew({ minion: 'web-1' }), 403, 'forbidden');
    const foreign = String(plain(await renew({ audience: 'kubernetes' })).token);
    assertProblem(await publish(foreign, { id: 'f', type: 'order.paid' }), 401, 'unauthorized');
  });

  test('an enrolment taken back, a type taken away and a service deleted count from the next request on', async () => {
    await register('kiosk', [{ type: 'sold' }]);
    const [lost, kept] = [await identity('kiosk'), await identity('kiosk')];
    const waiting = await enrolment('kiosk');
    const sold = (id: string) => ({ id, type: 'sold' });
    for (const { id } of [lost, waiting])
      assert.equal((await world.admin.send('DELETE', `/services/kiosk/enrolments/${id}`)).status, 204);
    assertProblem(
      await world.admin.send('DELETE', `/services/kiosk/enrolments/${lost.id}`),
      404,
      'not_found',
    );
    for (const [method, url] of [
      ['POST', '/events'],
      ['GET', '/identity'],
      ['POST', '/identity/renew'],
    ] as const)
      assertProblem(await as(lost.token).send(method, url), 401, 'unauthorized');
    assertProblem(await enrol(waiting.token), 401, 'unauthorized');
    assert.equal((await publish(kept.token, sold('1'))).status, 201);
    const tag = async () => etagOfAnswer(await world.admin.send('GET', '/services/kiosk'));
    const changed = await sendPlain(
      world.admin,
      'PUT',
      '/services/kiosk',
      { types: [] },
      { 'if-match': await tag() },
    );
    assert.equal(changed.status, 200, JSON.stringify(plain(changed)));
    assertProblem(await publish(kept.token, sold('2')), 403, 'forbidden');
    const gone = await world.admin.send('DELETE', '/services/kiosk', undefined, { 'if-match': await tag() });
    assert.equal(gone.status, 204);
    assertProblem(await publish(kept.token, sold('3')), 401, 'unauthorized');
    assertProblem(await as(kept.token).send('POST', '/identity/renew'), 401, 'unauthorized');
    // One of the same name is another one.
    await register('kiosk', [{ type: 'sold' }]);
    assertProblem(await publish(kept.token, sold('4')), 401, 'unauthorized');
  });

  test('a service that cannot be is refused, and nothing is made', async () => {
    const listed = async () => plain(await world.admin.send('GET', '/services'));
    const before = await listed();
    const type = { type: 'a' };
    for (const [body, status, field] of [
      [{ id: 'Shop', types: [] }, 422, 'id'],
      [{ id: 'a.b', types: [] }, 422, 'id'],
      [{ id: 'a' }, 422, 'types'],
      [{ id: 'a', types: [type, type] }, 422, 'types'],
      [{ id: 'a', types: [{ type: 'a.*' }] }, 422, 'types.0.type'],
      [{ id: 'a', types: [{ type: 'colonnade.pillar.created.v1' }] }, 422, 'types.0.type'],
      [{ id: 'a', types: [type, { type: 'b', schema: { type: 'nothing' } }] }, 422, 'types.1.schema'],
      [{ id: 'a', types: Array.from({ length: 65 }, (_, i) => ({ type: `t${i}` })) }, 422, 'types'],
      [{ id: 'shop', types: [] }, 409, undefined],
    ] as const) {
      const answer = await sendPlain(world.admin, 'POST', '/services', body);
      assert.equal(answer.status, status, JSON.stringify(plain(answer)));
      if (field !== undefined) assert.equal(plain(answer).field, field);
    }
    assertProblem(
      await sendPlain(world.admin, 'PUT', '/services/shop', { types: [] }),
      428,
      'precondition_required',
    );
    assertProblem(await world.admin.send('DELETE', '/services/shop'), 428, 'precondition_required');
    assertProblem(await world.admin.send('POST', '/services/none/enrolments'), 404, 'not_found');
    assert.deepEqual(await listed(), before);
  });

  test('a service has so many enrolments and no more, whoever makes them at once', async () => {
    await register('crowd', []);
    const made = await Promise.all(
      Array.from({ length: LIMITS.enrolmentsPerService + 2 }, () =>
        world.admin.send('POST', '/services/crowd/enrolments'),
      ),
    );
    const shown = plain(await world.admin.send('GET', '/services/crowd')).enrolment_ids as string[];
    assert.equal(shown.length, made.filter(({ status }) => status === 201).length);
    while ((await world.admin.send('POST', '/services/crowd/enrolments')).status === 201);
    assertProblem(await world.admin.send('POST', '/services/crowd/enrolments'), 409, 'conflict');
  });

  test('beyond its rate a service is told to wait, leaves no letter and no record, and bothers no other', async () => {
    const { url } = await world.startApi({ EVENTS_PER_MINUTE: '3' });
    const [shop, mill] = [(await identity()).token, (await identity('mill')).token];
    const [before, records] = [(await letters('shop')).length, (await auditRecords(world.bus)).length];
    const statuses: number[] = [];
    for (let i = 0; i < 5; i += 1) {
      const answer = await publish(shop, { id: `r${i}`, type: 'flour' }, url);
      statuses.push(answer.status);
      if (answer.status === 429) assert.ok(Number(answer.headers.get('retry-after')) >= 1);
    }
    assert.deepEqual(statuses, [403, 403, 403, 429, 429]);
    assert.equal((await letters('shop')).length, before + 3);
    // Two records of each that was let in.
    assert.equal((await auditRecords(world.bus)).length, records + 6);
    assert.equal((await publish(mill, { id: 'r', type: 'flour' }, url)).status, 201);
    assert.equal((await as(shop, url).send('GET', '/identity')).status, 200);
    const limits = plain(await createApiClient(url, world.adminToken).send('GET', '/limits'));
    assert.equal((limits.rates as Record<string, number>).events_per_minute, 3);
  });

  test('who published what is on record, and never its data', async () => {
    const { token } = await identity();
    const good = await publish(token, { id: 'rec', type: 'order.paid', data: CANARY });
    assert.equal(good.status, 201);
    const bad = await publish(token, { id: 'rec', type: 'flour', data: CANARY });
    const records = await auditRecords(world.bus);
    const recordOf = (answer: typeof good) =>
      records.find(
        ({ auditID, stage }) => auditID === answer.headers.get('audit-id') && stage === 'ResponseComplete',
      );
    const shown = [good, bad]
      .map(recordOf)
      .map((record) => [
        ...[record?.user.username, record?.user.groups?.join(), record?.verb, record?.responseStatus?.code],
        ...[record?.objectRef?.resource, record?.objectRef?.namespace],
        ...[record?.objectRef?.name, record?.objectRef?.uid],
      ]);
    const who = ['service:shop', 'colonnade:services', 'create'];
    assert.deepEqual(shown, [
      [...who, 201, 'events', 'shop', 'order.paid', 'rec'],
      [...who, 403, 'events', 'shop', 'flour', 'rec'],
    ]);
    assert.deepEqual(
      { ...(recordOf(good)?.requestObject as object) },
      { id: 'rec', type: 'order.paid', data: '*******' },
    );
    const all = JSON.stringify(records, (_, value) => (typeof value === 'bigint' ? String(value) : value));
    for (const secret of [CANARY, token]) assert.ok(!all.includes(secret));
  });

  test('a stream that takes no more is 503; sent again later, the event is there once', async () => {
    const { token } = await identity();
    const provision = async (maxServiceEventsBytes: number) => {
      const sizes = { maxEventsBytes: 16 * MIB, maxAuditBytes: 16 * MIB, replicas: 1 };
      await (await world.bus.as('provisioner')).provisionStreams({ ...sizes, maxServiceEventsBytes });
    };
    const event = { id: 'full', type: 'order.paid' };
    await provision(1);
    const before = (await published()).length;
    const refused = await publish(token, event);
    assertProblem(refused, 503, 'bus_unavailable');
    assert.ok(refused.headers.get('retry-after'));
    assert.equal((await published()).length, before);
    // The estate's own events and everything else go on.
    const pillar = { tgt_type: 'root', name: 'meanwhile', value: 1 };
    assert.equal((await sendPlain(world.admin, 'POST', '/pillars', pillar)).status, 201);
    await provision(4 * MIB);
    assert.equal((await publish(token, event)).status, 201);
    assert.equal((await publish(token, event)).status, 200);
    assert.equal((await published()).length, before + 1);
  });

  test('without NATS nothing is taken; sent again later, it is stored once', async () => {
    const { token } = await identity();
    const event = { id: 'away', type: 'order.paid' };
    await world.bus.nats.kill('SIGKILL');
    // What cannot be put on record does not happen.
    assertProblem(await publish(token, event), 500, 'audit_unavailable');
    assertProblem(await publish(token, { id: 'away', type: 'flour' }), 500, 'audit_unavailable');
    await world.bus.nats.restart();
    await waitFor('the bus to be back', async () =>
      [200, 201].includes((await publish(token, event)).status),
    );
    assert.equal((await publish(token, event)).status, 200);
    const found = await waitFor('the witness to be back', () => published().catch(() => undefined));
    const ids = found.map(({ event: { id } }) => id);
    assert.equal(ids.filter((id) => id === 'away').length, 1);
  });
});
