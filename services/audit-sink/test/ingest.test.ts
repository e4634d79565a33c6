import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import https from 'node:https';
import { after, before, describe, test } from 'node:test';
import type { AuditEvent } from '@colonnade/contracts';
import { type Certificate, makeAuthority } from '../../../test/support/certificates.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { eventOf, type PreparedSink, prepareSink, readIds, readLines } from './support.ts';

const TOKEN = 'a-token-for-the-api-server';

/** As kube-apiserver sends it: items without kind and apiVersion. */
function listOf(...events: object[]): string {
  const items = events.map((event) => ({ ...event, kind: undefined, apiVersion: undefined }));
  return JSON.stringify({ kind: 'EventList', apiVersion: 'audit.k8s.io/v1', metadata: {}, items });
}

describe('the ingest endpoint', () => {
  let sink: PreparedSink;
  let url: string;
  let ca: Buffer;
  let certificates: Record<'named' | 'unnamed' | 'foreign', Certificate>;
  before(async () => {
    sink = await prepareSink();
    const authority = await makeAuthority(sink.dir, 'ours');
    const stranger = await makeAuthority(sink.dir, 'theirs');
    const server = await authority.issue('sink');
    certificates = {
      named: await authority.issue('kube-apiserver'),
      unnamed: await authority.issue('somebody'),
      foreign: await stranger.issue('kube-apiserver'),
    };
    ca = await readFile(authority.certFile);
    const running = await sink.start({
      INGEST_PORT: '0',
      INGEST_TLS_CERT_FILE: server.certFile,
      INGEST_TLS_KEY_FILE: server.keyFile,
      INGEST_CLIENT_CA_FILE: authority.certFile,
      INGEST_CLIENT_NAMES: 'kube-apiserver',
      INGEST_TOKEN: TOKEN,
      INGEST_MAX_BYTES: '8388608',
    });
    url = running.ingestUrl as string;
  });
  after(() => sink[Symbol.asyncDispose]());

  type How = {
    token?: string | null;
    certificate?: Certificate;
    method?: string;
    headers?: Record<string, string>;
  };
  const send = async (body: string | Buffer, how: How = {}) => {
    const { token = TOKEN, certificate, method = 'POST', headers = {} } = how;
    const tls =
      certificate === undefined
        ? {}
        : { cert: await readFile(certificate.certFile), key: await readFile(certificate.keyFile) };
    const all: Record<string, string> = { 'content-type': 'application/json', ...headers };
    if (token !== null) all.authorization = `Bearer ${token}`;
    const { promise, resolve, reject } = Promise.withResolvers<{
      status: number;
      code: string | undefined;
      body: string;
    }>();
    const request = https.request(url, { method, ca, agent: false, headers: all, ...tls }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('end', () => {
        const text = Buffer.concat(parts).toString();
        const { code } = JSON.parse(text) as { code?: string };
        resolve({ status: response.statusCode ?? 0, code, body: text });
      });
    });
    request.on('error', reject);
    request.end(body);
    return promise;
  };
  const inFile = (id: string) => waitFor(id, async () => (await readIds(sink.logPath)).includes(id));

  test('stores what comes with the token, or with a certificate of the right name, in the form of the log', async () => {
    assert.equal((await send(listOf(eventOf('by-token')))).status, 200);
    const named = { token: null, certificate: certificates.named };
    assert.equal((await send(listOf(eventOf('by-certificate')), named)).status, 200);
    await inFile('by-token');
    await inFile('by-certificate');
    const [line] = await readLines(sink.logPath);
    const event = JSON.parse(line ?? '') as AuditEvent;
    assert.equal(event.kind, 'Event');
    assert.equal(event.apiVersion, 'audit.k8s.io/v1');
  });

  test('lets nobody else in', async () => {
    const list = listOf(eventOf('forged'));
    for (const how of [
      { token: null },
      { token: 'wrong' },
      { token: '' },
      { token: null, certificate: certificates.unnamed },
      { token: null, certificate: certificates.foreign },
    ]) {
      assert.equal((await send(list, how)).status, 401);
    }
    assert.ok(!(await readIds(sink.logPath)).includes('forged'));
  });

  test('a list that comes again is stored once', async () => {
    const list = listOf(eventOf('again-1'), eventOf('again-2'));
    for (let i = 0; i < 3; i += 1) assert.equal((await send(list)).status, 200);
    await send(listOf(eventOf('after-again')));
    await inFile('after-again');
    const ids = await readIds(sink.logPath);
    assert.equal(ids.filter((id) => id.startsWith('again-')).length, 2);
  });

  test('what differs in anything is another event, though it repeats the Audit-ID', async () => {
    const stages = ['RequestReceived', 'ResponseStarted', 'ResponseComplete'] as const;
    await send(listOf(...stages.map((stage) => eventOf('same-id', { stage }))));
    await send(listOf(eventOf('same-id', { stageTimestamp: '2026-01-31T12:00:01.000000Z' })));
    await waitFor(
      'all four',
      async () => (await readIds(sink.logPath)).filter((id) => id === 'same-id').length === 4,
    );
  });

  const refused: [string, string | Buffer, How, number][] = [
    ['no JSON', 'nonsense', {}, 400],
    ['invalid UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), {}, 400],
    ['nothing', '', {}, 400],
    ['a single event', JSON.stringify(eventOf('single')), {}, 400],
    ['another version', listOf(eventOf('x')).replace('audit.k8s.io/v1', 'audit.k8s.io/v1beta1'), {}, 400],
    ['items that are no list', '{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":7}', {}, 400],
    ['a GET', '', { method: 'GET' }, 405],
    ['another type', listOf(eventOf('x')), { headers: { 'content-type': 'application/yaml' } }, 415],
    ['an encoding', listOf(eventOf('x')), { headers: { 'content-encoding': 'gzip' } }, 415],
    ['more than the limit', `"${'x'.repeat(9 * 1024 * 1024)}"`, {}, 413],
  ];
  for (const [name, body, how, status] of refused) {
    test(`${name} is refused`, async () => assert.equal((await send(body, how)).status, status));
  }

  test('who has the token adds records that claim what they like, and reads, changes and removes none', async () => {
    const user = { username: 'crypto-kms', groups: ['colonnade:services'] };
    assert.equal((await send(listOf(eventOf('claimed', { user })))).status, 200);
    await inFile('claimed');
    const before = await readLines(sink.logPath);
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await send('', { method });
      assert.equal(answer.status, 405, method);
      assert.ok(!answer.body.includes('claimed'));
    }
    assert.deepEqual(await readLines(sink.logPath), before);
  });

  test('an item that is no event is kept as a dead letter; the others are stored', async () => {
    const before = (await sink.deadLetters()).length;
    const { stage: _stage, ...staged } = eventOf('no-stage');
    const answer = await send(listOf(eventOf('good-1'), staged, eventOf('good-2')));
    assert.equal(answer.status, 200);
    assert.deepEqual(JSON.parse(answer.body), { stored: 2, dead: 1 });
    await inFile('good-2');
    const letters = (await sink.deadLetters()).slice(before);
    assert.deepEqual(
      letters.map((l) => [l.reason, l.detail]),
      [['not_an_event', 'stage is none of audit.k8s.io/v1']],
    );
  });

  test('an event that fits no message loses its bodies, and says so', async () => {
    const requestObject = { data: 'x'.repeat(5 * 1024 * 1024) };
    assert.equal((await send(listOf(eventOf('huge', { level: 'Request', requestObject })))).status, 200);
    await inFile('huge');
    const event = (await readLines(sink.logPath))
      .map((l) => JSON.parse(l) as AuditEvent)
      .find((e) => e.auditID === 'huge');
    assert.equal(event?.requestObject, undefined);
    assert.equal(event?.annotations?.['audit.k8s.io/truncated'], 'true');
  });

  test('an event that is too large without its bodies is a dead letter, cut', async () => {
    const before = (await sink.deadLetters()).length;
    const userAgent = 'x'.repeat(5 * 1024 * 1024);
    assert.equal((await send(listOf(eventOf('agent', { userAgent }), eventOf('beside')))).status, 200);
    await inFile('beside');
    const [letter] = (await sink.deadLetters()).slice(before);
    assert.equal(letter?.reason, 'too_large');
    assert.equal(Buffer.from(letter?.payload_b64 ?? '', 'base64').length, 2 * 1024 * 1024);
  });

  test('bodies a strict parser refuses cost nothing but their exactness', async () => {
    const hard = listOf(eventOf('hard', { level: 'Request', requestObject: { x: 'HERE' } }), eventOf('easy'));
    const deep = '['.repeat(600) + ']'.repeat(600);
    for (const [i, body] of [
      '"\\ud800"',
      '123456789012345678901234567890',
      '1e999',
      deep,
      '{"a":1,"a":2}',
    ].entries()) {
      const list = hard
        .replace('"HERE"', body)
        .replaceAll('"hard"', `"hard-${i}"`)
        .replaceAll('"easy"', `"easy-${i}"`);
      assert.equal((await send(list)).status, 200, body.slice(0, 20));
      await inFile(`hard-${i}`);
      await inFile(`easy-${i}`);
    }
    const marked = (await readLines(sink.logPath))
      .map((l) => JSON.parse(l) as AuditEvent)
      .filter((e) => e.annotations?.['colonnade/normalised'] !== undefined)
      .map((e) => e.auditID);
    assert.deepEqual(marked, ['hard-0', 'hard-1', 'hard-2', 'hard-3', 'hard-4']);
  });

  test('while the bus is away it answers 503, and 200 once the stream has it', async () => {
    await sink.bus.nats.kill('SIGKILL');
    const list = listOf(eventOf('away'));
    const answer = await send(list);
    assert.equal(answer.status, 503);
    await sink.bus.nats.restart();
    await waitFor('the bus', async () => (await send(list)).status === 200, { limitMs: 20_000 });
    await inFile('away');
  });
});
