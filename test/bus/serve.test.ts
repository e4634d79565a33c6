import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Bus, route } from '@colonnade/bus';
import {
  auditSubject,
  ColonnadeError,
  kmsIssueMaster,
  kmsJwks,
  kmsMac,
  LIMITS,
  mergerExplain,
  startCall,
} from '@colonnade/contracts';
import { jetstreamManager } from '@nats-io/jetstream';
import { headers, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { type RealBus, startRealBus } from '../support/real-bus.ts';
import { waitFor } from '../support/wait-for.ts';

const HEX = 'ab'.repeat(32);

describe('a service on the bus', () => {
  let bus: RealBus;
  let kms: Bus;
  let api: Bus;
  let attacker: NatsConnection;
  let handled = 0;

  before(async () => {
    bus = await startRealBus();
    kms = await bus.as('crypto-kms');
    api = await bus.as('pillar-api');
    attacker = await bus.raw('pillar-api');
    await kms.serve({ name: 'crypto-kms', version: '0.1.0', description: 'test', maxInFlight: 20 }, [
      route(kmsMac, async ({ sha256_hex }, call) => {
        handled += 1;
        if (sha256_hex.startsWith('ee')) throw new ColonnadeError('forbidden', 'not for you');
        if (sha256_hex.startsWith('ff')) throw new Error('plaintext-of-a-secret');
        if (sha256_hex.startsWith('bb')) for (const end = performance.now() + 300; performance.now() < end; );
        if (sha256_hex.startsWith('dd'))
          await new Promise((r) => setTimeout(r, Math.min(100, call.deadlineMs)));
        return { mac_hex: sha256_hex };
      }),
      route(kmsJwks, async () => ({ issuer: 'x', keys: [], master_kids: [] })),
      route(kmsIssueMaster, async () => ({ token: 'a-token-of-a-master', jti: 'j', expires_at_ms: 0 })),
    ]);
  });
  after(async () => bus[Symbol.asyncDispose]());

  test('answers a request', async () => {
    assert.deepEqual(await api.request(kmsMac, { sha256_hex: HEX }, startCall(1000)), { mac_hex: HEX });
  });

  test('an error keeps its code; an unexpected one says nothing of its cause', async () => {
    await assert.rejects(api.request(kmsMac, { sha256_hex: `ee${HEX.slice(2)}` }, startCall(1000)), {
      code: 'forbidden',
      message: 'not for you',
    });
    await assert.rejects(
      api.request(kmsMac, { sha256_hex: `ff${HEX.slice(2)}` }, startCall(1000)),
      (error) => {
        assert.ok(error instanceof ColonnadeError);
        assert.equal(error.code, 'internal');
        assert.ok(!error.message.includes('plaintext'));
        return true;
      },
    );
  });

  for (const [name, payload, code] of [
    ['not JSON', 'nonsense', 'bad_request'],
    ['a duplicate key', `{"sha256_hex":"${HEX}","sha256_hex":"${HEX}"}`, 'bad_request'],
    ['an unknown field', `{"sha256_hex":"${HEX}","more":1}`, 'bad_request'],
    ['a missing field', '{}', 'bad_request'],
    ['a wrong kind', '{"sha256_hex":1}', 'bad_request'],
    ['invalid UTF-8', new Uint8Array([0x7b, 0xff, 0x7d]), 'bad_request'],
    ['nothing', '', 'bad_request'],
  ] as const) {
    test(`${name} is refused through the micro error headers, before the handler`, async () => {
      const before = handled;
      const answer = await attacker.request(kmsMac.subject, payload, { timeout: 1000 });
      assert.equal(answer.headers?.get('Nats-Service-Error'), code);
      assert.equal(answer.headers?.get('Nats-Service-Error-Code'), '400');
      assert.equal(handled, before);
    });
  }

  test('an error text that is cut in the middle of a character does not end the service', async () => {
    const fields = Array.from({ length: 40 }, (_, i) => `"${'x'.repeat(i % 3)}${'😀'.repeat(32)}${i}":1`);
    for (let shift = 0; shift < 2; shift += 1) {
      const payload = `{${fields.map((f) => f.replace('"', `"${'y'.repeat(shift)}`)).join(',')}}`;
      const answer = await attacker.request(kmsMac.subject, payload, { timeout: 1000 });
      assert.equal(answer.headers?.get('Nats-Service-Error'), 'bad_request');
    }
    assert.deepEqual(await api.request(kmsMac, { sha256_hex: HEX }, startCall(1000)), { mac_hex: HEX });
  });

  test('whoever stole a password hears the answers of that user, and understands none that holds a secret', async () => {
    const heard: Msg[] = [];
    attacker.subscribe('_INBOX.pillar-api.>', { callback: (_, message) => void heard.push(message) });
    await attacker.flush();
    const answer = await api.request(
      kmsIssueMaster,
      { grant: 'x', master: 'm1', lifetime_s: 60 },
      startCall(1000),
    );
    assert.equal(answer.token, 'a-token-of-a-master');
    await waitFor('the thief to hear it', () => heard.length > 0);
    assert.ok(heard.every((m) => !Buffer.from(m.data).includes('a-token')));
  });

  test('an answer with a secret is given only to someone who can open it', async () => {
    const payload = '{"grant":"x","lifetime_s":60,"master":"m1"}';
    const answer = await attacker.request(kmsIssueMaster.subject, payload, { timeout: 1000 });
    assert.equal(answer.headers?.get('Nats-Service-Error'), 'bad_request');
  });

  test('a request without time left is not sent, one without a server fails at once', async () => {
    await assert.rejects(api.request(kmsMac, { sha256_hex: HEX }, startCall(0)), { code: 'unavailable' });
    const merger = await bus.as('pillar-merger');
    const started = performance.now();
    await assert.rejects(
      api.request(mergerExplain, { master: 'm1', minion_id: 'a', pillarenv: 'base' }, startCall(5000)),
      { code: 'unavailable' },
    );
    assert.ok(performance.now() - started < 4000);
    assert.ok(merger.isConnected());
  });

  test('a request whose time is up is not worked on, and its answer is not written', async () => {
    const ask = (sha256_hex: string, budgetMs: number) => {
      const head = headers();
      head.set('Colonnade-Budget-Ms', String(budgetMs));
      return attacker.request(kmsMac.subject, JSON.stringify({ sha256_hex }), {
        timeout: 5000,
        headers: head,
      });
    };
    const before = handled;
    // They come together; the first holds up the loop for longer than the others have.
    const [long, second, third] = await Promise.all([
      ask(`bb${HEX.slice(2)}`, 100),
      ask(HEX, 100),
      ask(HEX, 5000),
    ]);
    assert.equal(long?.headers?.get('Nats-Service-Error'), 'unavailable');
    assert.equal(second?.headers?.get('Nats-Service-Error'), 'unavailable');
    assert.deepEqual(third?.json(), { mac_hex: HEX });
    assert.equal(handled, before + 2);
  });

  test('an answer that is none is a fault of the service, not of who asked', async () => {
    const merger = await bus.raw('pillar-merger');
    let payload = '';
    const subscription = merger.subscribe(mergerExplain.subject, {
      queue: 'pillar-merger',
      callback: (error, message) => void (error ?? message.respond(payload)),
    });
    await merger.flush();
    for (payload of ['nonsense', '{"more":1}', '']) {
      const ask = { master: 'm1', minion_id: 'a', pillarenv: 'base' } as const;
      await assert.rejects(api.request(mergerExplain, ask, startCall(2000)), { code: 'internal' });
    }
    subscription.unsubscribe();
    await merger.flush();
  });

  test('a reply subject that is no inbox of a caller is dropped, the purge of a stream included', async () => {
    const provisioner = await bus.raw('provisioner');
    const manager = await jetstreamManager(provisioner, { checkAPI: false });
    await api.publishDurable(
      { subject: auditSubject('pillar-api'), msgId: 'kept', payload: Buffer.from('{}') },
      startCall(2000),
    );
    const before = (await manager.streams.info('AUDIT')).state;
    const operator = await bus.raw('operator');
    for (const reply of [
      '$JS.API.STREAM.PURGE.AUDIT',
      auditSubject('crypto-kms'),
      '_INBOX.pillar-merger.x',
      'x',
      undefined,
    ]) {
      const options = reply === undefined ? {} : { reply };
      attacker.publish(kmsMac.subject, `{"sha256_hex":"${HEX}"}`, options);
      for (const verb of ['PING', 'INFO', 'STATS']) operator.publish(`$SRV.${verb}`, '', options);
    }
    await attacker.flush();
    await operator.flush();
    // Everything above was handled before this answer.
    await api.request(kmsMac, { sha256_hex: HEX }, startCall(1000));
    const state = (await manager.streams.info('AUDIT')).state;
    assert.deepEqual([state.messages, state.last_seq], [before.messages, before.last_seq]);
  });

  test('the operator sees the service through PING, INFO and STATS', async () => {
    const operator = await bus.raw('operator');
    for (const verb of ['PING', 'INFO', 'STATS']) {
      const answer: Msg = await operator.request(`$SRV.${verb}.crypto-kms`, '', { timeout: 1000 });
      assert.equal(answer.json<{ name: string }>().name, 'crypto-kms');
    }
  });

  test('too many requests at once are answered overloaded', async () => {
    const all = await Promise.allSettled(
      Array.from({ length: 60 }, () =>
        api.request(kmsMac, { sha256_hex: `dd${HEX.slice(2)}` }, startCall(3000)),
      ),
    );
    const codes = all.map((r) => (r.status === 'fulfilled' ? 'ok' : (r.reason as ColonnadeError).code));
    assert.equal(codes.filter((c) => c === 'ok').length, 20);
    assert.equal(codes.filter((c) => c === 'overloaded').length, 40);
  });

  test('a message over the limit is refused before it is sent', async () => {
    await assert.rejects(
      api.publishDurable(
        {
          subject: auditSubject('pillar-api'),
          msgId: 'big',
          payload: new Uint8Array(LIMITS.natsPayloadBytes + 1),
        },
        startCall(1000),
      ),
      { code: 'too_large' },
    );
  });

  test('a message id used twice is a failure, unless the sender says it may have sent it before', async () => {
    const message = { subject: auditSubject('pillar-api'), msgId: 'twice', payload: Buffer.from('{}') };
    await api.publishDurable(message, startCall(1000));
    await assert.rejects(api.publishDurable(message, startCall(1000)), { code: 'duplicate' });
    const again = await api.publishDurable({ ...message, allowDuplicate: true }, startCall(1000));
    assert.equal(again.duplicate, true);
  });

  test('a header of a foreign trace does not get in', async () => {
    const head = headers();
    head.set('traceparent', 'garbage');
    head.set('Colonnade-Budget-Ms', '-5');
    const answer = await attacker.request(kmsMac.subject, `{"sha256_hex":"${HEX}"}`, {
      timeout: 1000,
      headers: head,
    });
    assert.equal(answer.headers?.get('Nats-Service-Error') ?? '', '');
  });

  test('after a restart of the server the service answers again', async () => {
    await bus.nats.restart();
    const deadline = performance.now() + 15_000;
    for (;;) {
      const answer = await api
        .request(kmsMac, { sha256_hex: HEX }, startCall(500))
        .catch((e: ColonnadeError) => e.code);
      if (typeof answer !== 'string') break;
      assert.ok(performance.now() < deadline, `still ${answer}`);
      await new Promise((r) => setTimeout(r, 50));
    }
  });
});
