import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Auditor } from '@colonnade/audit';
import { ColonnadeError, startCall } from '@colonnade/contracts';
import { createLogger, createMetrics } from '@colonnade/service-kit';
import { fastify } from 'fastify';
import { createAuditPlugin } from './audit.ts';
import type { Principal } from './auth/authenticate.ts';
import { createEvents } from './events.ts';
import { writeProblem } from './http/problem.ts';

const gone = () => Promise.reject(new ColonnadeError('bus_unavailable', 'gone'));
const events = createEvents(createLogger({ service: 'test', level: 'silent' }), createMetrics('test'));
const ann = { sub: 'ann', roles: ['admin'] } as unknown as Principal;

/** An app with one recorded route, and an auditor whose streams fail as told. */
function appWith(span: { received?: () => Promise<void>; complete?: () => Promise<void> }, connected = true) {
  const stages: string[] = [];
  const auditor: Auditor = {
    begin: (request) => ({
      auditID: request.auditID ?? '',
      received: span.received ?? (async () => void stages.push('received')),
      complete: span.complete ?? (async ({ code }) => void stages.push(`complete ${code}`)),
    }),
  };
  const app = fastify();
  app.decorateRequest('principal', undefined);
  app.addHook('onRequest', async (request) => {
    request.principal = ann;
    request.call = startCall(1000);
  });
  createAuditPlugin(auditor, { isConnected: () => connected }, events).register(app);
  app.setErrorHandler((error, request, reply) => {
    assert.ok(error instanceof ColonnadeError);
    void reply.send(writeProblem(reply, error, request.id));
  });
  app.post('/recorded', { config: { recorded: true } }, async (_request, reply) => {
    stages.push('handled');
    reply.code(201).header('etag', '"x"').header('location', '/x');
    return 'the secret';
  });
  app.post('/plain', async () => 'shown');
  app.post('/denied', async () => {
    throw new ColonnadeError('forbidden', 'no');
  });
  return { app, stages };
}

test('a record before the act and one before the answer', async () => {
  const { app, stages } = appWith({});
  const answer = await app.inject({ method: 'POST', url: '/recorded' });
  assert.equal(answer.body, 'the secret');
  assert.deepEqual(stages, ['received', 'handled', 'complete 201']);
});

test('without the first acknowledgement nothing happens', async () => {
  const { app, stages } = appWith({ received: gone });
  const answer = await app.inject({ method: 'POST', url: '/recorded' });
  assert.equal(answer.statusCode, 503);
  assert.ok(!stages.includes('handled'));
});

test('without the last one the answer is withheld, its headers too', async () => {
  const { app, stages } = appWith({ complete: gone });
  const answer = await app.inject({ method: 'POST', url: '/recorded' });
  assert.deepEqual(stages, ['received', 'handled']);
  assert.equal(answer.statusCode, 503);
  assert.doesNotMatch(answer.body, /the secret/u);
  assert.match(answer.json().detail, /carried out/u);
  assert.deepEqual([answer.headers.etag, answer.headers.location], [undefined, undefined]);
});

test('without a connection it does not even try', async () => {
  const { app, stages } = appWith({}, false);
  assert.equal((await app.inject({ method: 'POST', url: '/recorded' })).statusCode, 503);
  assert.deepEqual(stages, []);
});

test('what changes nothing is on record only when it is denied', async () => {
  const { app, stages } = appWith({});
  assert.equal((await app.inject({ method: 'POST', url: '/plain' })).body, 'shown');
  assert.deepEqual(stages, []);
  assert.equal((await app.inject({ method: 'POST', url: '/denied' })).statusCode, 403);
  assert.deepEqual(stages, ['complete 403']);
});
