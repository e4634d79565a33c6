import assert from 'node:assert/strict';
import { rename, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import type { AuditEvent } from '@colonnade/contracts';
import type { FastifyInstance } from 'fastify';
import { tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { openPolicySource } from '../src/index.ts';
import {
  policyOf,
  type RealBus,
  readRecords,
  removeStream,
  restoreStream,
  startApp,
  startRealBus,
  type TestApp,
  tellingWatch,
  zThing,
} from './support.ts';

let bus: RealBus;
let api: Bus;
let handled = 0;
let atHandler: AuditEvent[] = [];
const stream = { current: new PassThrough() };

before(async () => {
  bus = await startRealBus();
  api = await bus.as('pillar-api');
});
after(() => bus[Symbol.asyncDispose]());
beforeEach(async () => {
  await removeStream(bus);
  await restoreStream(bus);
  handled = 0;
});

function addRoutes(app: FastifyInstance): void {
  const audit = { request: zThing, response: zThing };
  app.post('/pillars', { config: { audit } }, async (request, reply) => {
    handled += 1;
    atHandler = await readRecords(bus);
    reply.type('application/json');
    const { 'x-answer': answer = '{"name":"n","value":"plain"}' } = request.headers;
    return answer === 'large' ? `{"name":"n","value":"${'y'.repeat(5_000_000)}"}` : answer;
  });
  app.post('/pillars/:pid/reveal', { config: { audit: { ...audit, floor: true } } }, async (_, reply) => {
    reply.type('application/json');
    return '{"name":"n","value":"SECRET","is_secret":true}';
  });
  // A body that goes by as it is read: nobody has it parsed.
  app.post('/pillars/import', async (request, reply) => {
    request.body = new PassThrough();
    return reply.send('text');
  });
  app.get('/pillars/:pid', async () => 'text');
  app.get('/events', { config: { audit: { longRunning: true } } }, async (_, reply) => {
    stream.current = new PassThrough();
    stream.current.write('begun, ');
    return reply.send(stream.current);
  });
  app.put('/pillars/:pid', async () => {
    throw new Error('past the error handler');
  });
  app.delete('/pillars/:pid', async () => {
    throw new Error('of the handler');
  });
}

const started = async (options: Partial<Parameters<typeof startApp>[0]> = {}): Promise<TestApp> =>
  startApp({ bus: api, addRoutes, ...options });

const post = (app: TestApp, path: string, body: string, headers: Record<string, string> = {}) =>
  fetch(new URL(path, app.url), {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headers },
  });

describe('a request', () => {
  test('is on record before its handler runs, and again before its answer leaves', async () => {
    await using app = await started();
    const answer = await post(app, '/pillars?dry=1', '{"name":"n","value":1}', {
      'audit-id': 'my-id',
      'user-agent': 'probe/1',
    });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('audit-id'), 'my-id');
    assert.deepEqual(
      atHandler.map(({ stage }) => stage),
      ['RequestReceived'],
    );
    const [received, complete, ...others] = await readRecords(bus);
    assert.equal(others.length, 0);
    assert.equal(received?.responseStatus, undefined);
    assert.deepEqual({ ...complete?.responseStatus }, { code: 200 });
    for (const record of [received, complete]) {
      assert.equal(record?.auditID, 'my-id');
      assert.equal(record?.verb, 'create');
      assert.equal(record?.requestURI, '/pillars?dry=1');
      assert.deepEqual({ ...record?.user }, { username: 'alice', groups: ['admin'] });
      assert.deepEqual(record?.sourceIPs, ['127.0.0.1']);
      assert.equal(record?.userAgent, 'probe/1');
      assert.deepEqual(
        { ...record?.objectRef },
        { resource: 'pillars', apiGroup: 'colonnade', apiVersion: 'v1' },
      );
      assert.equal(record?.requestObject, undefined);
    }
  });

  test('that is denied has the record of its end, and the handler never runs', async () => {
    await using app = await started();
    assert.equal((await post(app, '/pillars', '{}', { 'x-deny': 'forbidden' })).status, 403);
    const records = await readRecords(bus);
    assert.deepEqual(
      records.map(({ stage, responseStatus }) => [stage, responseStatus?.code]),
      [['ResponseComplete', 403]],
    );
    assert.equal(handled, 0);
  });

  test('has the user agent it sent, in UTF-8 or in Latin-1', async () => {
    await using app = await started();
    for (const sent of [Buffer.from('Grüße/1 – ✓'), Buffer.from('Grüße/1', 'latin1')]) {
      await post(app, '/pillars', '{"name":"n","value":1}', { 'user-agent': sent.toString('latin1') });
    }
    const agents = (await readRecords(bus)).map(({ userAgent }) => userAgent);
    assert.deepEqual(agents, ['Grüße/1 – ✓', 'Grüße/1 – ✓', 'Grüße/1', 'Grüße/1']);
  });

  test('whose handler throws is complete, with the status its error handler gave', async () => {
    await using app = await started();
    const answer = await fetch(new URL('/pillars/7', app.url), { method: 'DELETE' });
    assert.equal(answer.status, 500);
    const [, end] = await readRecords(bus);
    assert.deepEqual([end?.stage, end?.responseStatus?.code, end?.verb], ['ResponseComplete', 500, 'delete']);
    assert.deepEqual([end?.objectRef?.name, end?.objectRef?.uid], ['7', '7']);
  });

  test('whose error handler throws as well is a Panic', async () => {
    await using app = await started();
    const answer = await fetch(new URL('/pillars/7', app.url), { method: 'PUT' });
    assert.equal(answer.status, 500);
    const records = await readRecords(bus);
    assert.deepEqual(
      records.map(({ stage, responseStatus }) => [stage, responseStatus?.code]),
      [
        ['RequestReceived', undefined],
        ['Panic', 500],
      ],
    );
  });

  test('for something that is no resource has no object', async () => {
    await using app = await started({ mode: 'blocking' });
    assert.equal((await fetch(new URL('/nowhere/at/all?x=1', app.url))).status, 404);
    const records = await readRecords(bus);
    assert.deepEqual(
      records.map(({ verb, objectRef, requestURI }) => [verb, objectRef, requestURI]),
      [
        ['get', undefined, '/nowhere/at/all?x=1'],
        ['get', undefined, '/nowhere/at/all?x=1'],
      ],
    );
  });

  test('that the policy or the service leaves out leaves no record', async () => {
    await using app = await started({ mode: 'blocking', policy: policyOf('- level: None') });
    assert.equal((await fetch(new URL('/pillars/1', app.url))).status, 200);
    await using limited = await started();
    assert.equal((await post(limited, '/pillars', '{}', { 'x-deny': 'rate_limited' })).status, 429);
    assert.equal((await readRecords(bus)).length, 0);
  });

  test('has both its records or none, however often the policy is read anew meanwhile', async () => {
    await using dir = await tempDir('reload');
    const file = path.join(dir.path, 'policy.yaml');
    const write = (rules: string) =>
      writeFile(`${file}.new`, `apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n${rules}\n`).then(() =>
        rename(`${file}.new`, file),
      );
    await write('- level: Metadata');
    await using policy = openPolicySource({ file, strict: true, watch: tellingWatch().watch });
    await using app = await started({ mode: 'blocking', policy });
    const turns = ['- level: None', '- level: Metadata\n  omitStages: [Panic]'];
    for (let i = 0; i < 40; i += 1) {
      const answers = Array.from({ length: 4 }, () => fetch(new URL('/pillars/1', app.url)));
      await write(turns[i % 2] as string);
      policy.reload();
      for (const answer of answers) assert.equal((await answer).status, 200);
    }
    const byId = Map.groupBy(await readRecords(bus), ({ auditID }) => auditID);
    assert.ok(byId.size > 0 && byId.size < 160, `${byId.size}`);
    for (const records of byId.values()) assert.equal(records.length, 2);
  });

  test('that goes on has ResponseStarted when it begins and ResponseComplete when it ends', async () => {
    await using app = await started({ mode: 'blocking' });
    const answer = await fetch(new URL('/events', app.url));
    assert.deepEqual(
      (await readRecords(bus)).map(({ stage }) => stage),
      ['RequestReceived', 'ResponseStarted'],
    );
    stream.current.end('done');
    assert.equal(await answer.text(), 'begun, done');
    const ended = async () => (await readRecords(bus)).find(({ stage }) => stage === 'ResponseComplete');
    const end = await waitFor('the end', ended);
    assert.deepEqual({ ...end.responseStatus }, { code: 200 });
  });

  test('that goes on and is left by its client ends as well', async () => {
    await using app = await started({ mode: 'batch' });
    const abort = new AbortController();
    await fetch(new URL('/events', app.url), { signal: abort.signal });
    abort.abort();
    const ended = async () => (await readRecords(bus)).find(({ stage }) => stage === 'ResponseComplete');
    const end = await waitFor('the end', ended);
    assert.equal(end.responseStatus?.message, 'the connection was closed early');
  });
});

describe('Audit-ID', () => {
  test('repeated for every request, loses none of them', async () => {
    await using app = await started({ mode: 'blocking-strict' });
    await Promise.all(
      Array.from({ length: 40 }, () =>
        fetch(new URL('/pillars/1', app.url), { headers: { 'audit-id': 'same' } }),
      ),
    );
    const records = await readRecords(bus);
    assert.equal(records.length, 80);
    assert.ok(records.every(({ auditID }) => auditID === 'same'));
  });

  test('that is not well formed is replaced', async () => {
    await using app = await started();
    for (const bad of ['a b', 'x'.repeat(65), 'ü', '', `col_0123456789abcdef_${'S'.repeat(43)}`]) {
      const answer = await fetch(new URL('/pillars/1', app.url), { headers: { 'audit-id': bad } });
      assert.match(answer.headers.get('audit-id') ?? '', /^[\w-]{1,64}$/u);
      assert.notEqual(answer.headers.get('audit-id'), bad);
    }
  });
});

describe('where a request comes from', () => {
  const forwarded = { 'x-forwarded-for': '9.9.9.9, 10.1.1.1, not-an-ip, 203.0.113.7, 10.0.0.2' };
  const ipsOf = async (app: TestApp) => {
    await fetch(new URL('/pillars/1', app.url), { headers: forwarded });
    return (await readRecords(bus)).at(-1)?.sourceIPs;
  };

  test('is the connection, whatever a stranger writes into X-Forwarded-For', async () => {
    await using app = await started({ mode: 'blocking' });
    assert.deepEqual(await ipsOf(app), ['127.0.0.1']);
  });

  test('is the client a trusted proxy names, with the proxies in between', async () => {
    await using app = await started({ mode: 'blocking', trustProxy: '127.0.0.1,10.0.0.0/8' });
    assert.deepEqual(await ipsOf(app), ['203.0.113.7', '10.0.0.2', '127.0.0.1']);
  });
});

describe('bodies', () => {
  const secret = '{"name":"n","value":"hunter2","is_secret":true}';

  test('are recorded as far as the level says', async () => {
    for (const [level, bodies] of [
      ['Metadata', [false, false]],
      ['Request', [true, false]],
      ['RequestResponse', [true, true]],
    ] as const) {
      await using app = await started({ policy: policyOf(`- level: ${level}`) });
      await post(app, '/pillars', '{"name":"n","value":1.0}');
      const [received, complete] = (await readRecords(bus)).slice(-2);
      assert.equal(received?.requestObject, undefined);
      assert.deepEqual(
        [complete?.requestObject, complete?.responseObject].map((b) => b !== undefined),
        bodies,
      );
      assert.equal(complete?.level, level);
      if (bodies[0]) assert.deepEqual({ ...(complete?.requestObject as object) }, { name: 'n', value: 1 });
    }
  });

  test('that no schema describes are left out, and the record says so', async () => {
    await using app = await started({ policy: policyOf('- level: RequestResponse') });
    await post(app, '/pillars/import', '{"value":"unknown"}');
    await fetch(new URL('/pillars/1', app.url));
    const ends = (await readRecords(bus)).filter(({ stage }) => stage === 'ResponseComplete');
    assert.deepEqual(
      ends.map(({ annotations }) => ({ ...annotations })),
      [
        {
          'colonnade/request-body': 'omitted: no schema',
          'colonnade/response-body': 'omitted: no schema',
        },
        { 'colonnade/response-body': 'omitted: no schema' },
      ],
    );
  });

  test('never hold a secret, at any level', async () => {
    await using app = await started({ policy: policyOf('- level: RequestResponse') });
    await post(app, '/pillars', secret, { 'x-answer': secret });
    await post(app, '/pillars/1/reveal', '{"name":"n","value":1}');
    await post(app, '/pillars', secret.replace('}', ',"oops":1}'));
    await post(app, '/pillars', secret.replace('true', '"true"'));
    const records = await readRecords(bus);
    assert.equal(records.length, 8);
    const text = JSON.stringify(records, (_, value) => (typeof value === 'bigint' ? String(value) : value));
    assert.doesNotMatch(text, /hunter2|SECRET/u);
    assert.deepEqual(
      { ...(records[1]?.requestObject as object) },
      { name: 'n', value: '*******', is_secret: true },
    );
    assert.deepEqual(
      { ...records[5]?.annotations },
      { 'colonnade/request-body': 'omitted: not of its schema' },
    );
  });
});

describe('hostile input', () => {
  test('a user agent of 10 MB, line ends and U+2028 in every text', async () => {
    await using app = await started();
    const nasty = 'a\u2028b\u0085c"\\';
    const url = new URL(app.url);
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const sent = httpRequest(
        { port: url.port, host: url.hostname, method: 'POST', path: '/pillars?%0A%E2%80%A8' },
        (response) => {
          response.resume().on('end', () => resolve(response.statusCode));
        },
      ).on('error', reject);
      sent.setHeader('content-type', 'application/json');
      sent.setHeader('user-agent', `${'u'.repeat(10_000_000)}`);
      sent.setHeader('x-user', Buffer.from(nasty).toString('latin1'));
      sent.end(JSON.stringify({ name: nasty, value: `\n${nasty}` }));
    });
    assert.equal(status, 200);
    const records = await readRecords(bus);
    assert.equal(records.length, 2);
    assert.match(records[0]?.userAgent ?? '', /^u{1024}\.\.\.TRUNCATED$/u);
  });

  test('bodies too large for a record are left out of it, and the record says so', async () => {
    await using app = await started({ policy: policyOf('- level: RequestResponse') });
    const large = `{"name":"n","value":"${'x'.repeat(5_000_000)}"}`;
    for (const [body, answer] of [
      [large, '{"name":"n","value":1}'],
      ['{"name":"n","value":1}', 'large'],
    ] as const) {
      const { status } = await post(app, '/pillars', body, { 'x-answer': answer });
      assert.equal(status, 200);
      const complete = (await readRecords(bus)).at(-1);
      assert.equal(complete?.annotations?.['audit.k8s.io/truncated'], 'true');
      assert.equal(complete?.responseObject, undefined);
      assert.equal(complete?.requestObject === undefined, body === large);
    }
  });
});
