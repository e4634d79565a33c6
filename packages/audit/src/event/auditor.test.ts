import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { DurableMessage } from '@colonnade/bus';
import { ColonnadeError, decode, decodeAuditMessage, zAuditEvent } from '@colonnade/contracts';
import type { PolicyEvaluator } from '../policy/evaluate.ts';
import type { AuditDecision } from '../policy/types.ts';
import { createAuditor } from './auditor.ts';
import { microTime } from './micro-time.ts';

const evaluatorOf = (decision: Partial<AuditDecision>): PolicyEvaluator => ({
  evaluate: () => ({ level: 'Metadata', omitStages: [], omitManagedFields: false, ...decision }),
});

function recorder(fail = false, policy = evaluatorOf({})) {
  const sent: DurableMessage[] = [];
  const publishDurable = async (message: DurableMessage) => {
    if (fail) throw new ColonnadeError('bus_unavailable', 'not stored');
    sent.push(message);
    return { seq: sent.length, duplicate: false };
  };
  return { sent, auditor: createAuditor({ bus: { publishDurable }, service: 'pillar-api', policy }) };
}

const request = {
  verb: 'reveal',
  requestURI: '/pillars/1/reveal',
  user: { username: 'alice', groups: ['secret-reader'] },
};

describe('an audit record', () => {
  test('is an audit.k8s.io/v1 Event under the name of its service', async () => {
    const { sent, auditor } = recorder();
    const span = auditor.begin({
      ...request,
      objectRef: { resource: 'pillars', name: '1', subresource: 'reveal' },
    });
    await span.received();
    await span.complete({ code: 403, reason: 'forbidden' });
    const [first, second] = sent.map((m) => decode(zAuditEvent, m.payload));
    assert.equal(sent[0]?.subject, 'colonnade.audit.v1.pillar-api');
    assert.deepEqual([first?.stage, second?.stage], ['RequestReceived', 'ResponseComplete']);
    assert.deepEqual(second?.responseStatus, { code: 403, status: 'Failure', reason: 'forbidden' });
    assert.equal(first?.auditID, second?.auditID);
    assert.notEqual(sent[0]?.msgId, sent[1]?.msgId);
  });

  test('that is to be stored in the end is tried under one message id', async () => {
    const ids: { msgId: string; allowDuplicate: boolean | undefined }[] = [];
    const publishDurable = async ({ msgId, allowDuplicate }: DurableMessage) => {
      ids.push({ msgId, allowDuplicate });
      if (ids.length < 3) throw new ColonnadeError('bus_unavailable', 'the acknowledgement is lost');
      return { seq: 1, duplicate: true };
    };
    const auditor = createAuditor({ bus: { publishDurable }, service: 'crypto-kms' });
    await auditor.begin(request).completeUntilStored({ code: 200 });
    assert.equal(new Set(ids.map(({ msgId }) => msgId)).size, 1);
    assert.deepEqual(
      ids.map(({ allowDuplicate }) => allowDuplicate),
      [false, true, true],
    );
  });

  test('never takes its message id from the client', async () => {
    const { sent, auditor } = recorder();
    for (let i = 0; i < 3; i++)
      await auditor.begin({ ...request, auditID: 'repeated' }).complete({ code: 200 });
    assert.equal(new Set(sent.map((m) => m.msgId)).size, 3);
    assert.ok(sent.every((m) => !m.msgId.includes('repeated')));
    assert.ok(sent.every((m) => decode(zAuditEvent, m.payload).auditID === 'repeated'));
  });

  test('bounds what a client may send, and keeps it encodable', async () => {
    const { sent, auditor } = recorder();
    await auditor
      .begin({ ...request, userAgent: `${'x'.repeat(10_000_000)}\ud800`, requestURI: '/\udfff\u2028\n' })
      .complete({ code: 200 });
    assert.ok((sent[0]?.payload.length ?? 0) < 8192);
    decode(zAuditEvent, sent[0]?.payload ?? '');
  });

  test('that is not stored is an error for whoever acts', async () => {
    const { auditor } = recorder(true);
    await assert.rejects(auditor.begin(request).complete({ code: 200 }), { code: 'bus_unavailable' });
  });
});

describe('the policy', () => {
  test('decides level and stages of what has no floor', async () => {
    const { sent, auditor } = recorder(
      false,
      evaluatorOf({ level: 'Request', omitStages: ['RequestReceived'] }),
    );
    const span = auditor.begin({ ...request, floor: false });
    await span.received();
    await span.complete({ code: 200 });
    assert.deepEqual(
      sent.flatMap((m) => decodeAuditMessage(m.payload)).map(({ stage, level }) => [stage, level]),
      [['ResponseComplete', 'Request']],
    );
  });

  test('can raise a floor and not lower it', async () => {
    const low = recorder(
      false,
      evaluatorOf({ level: 'None', omitStages: ['RequestReceived', 'ResponseComplete'] }),
    );
    const span = low.auditor.begin(request);
    await span.received();
    await span.complete({ code: 200 });
    await span.completeBatched({ code: 200 });
    assert.equal(low.sent.length, 3);
    const high = recorder(false, evaluatorOf({ level: 'Request' }));
    assert.equal(high.auditor.begin(request).level, 'Request');
  });
});

describe('records in batches', () => {
  test('are stored before anybody goes on, many with one message', async () => {
    const { sent, auditor } = recorder();
    await Promise.all(
      Array.from({ length: 300 }, () => auditor.begin(request).completeBatched({ code: 200 })),
    );
    assert.equal(sent.flatMap((m) => decodeAuditMessage(m.payload)).length, 300);
    assert.ok(sent.length < 10, `${sent.length} messages`);
    assert.equal(new Set(sent.map((m) => m.msgId)).size, sent.length);
  });

  test('that are not stored are an error for everybody in them', async () => {
    const { auditor } = recorder(true);
    const results = await Promise.allSettled(
      [1, 2, 3].map(() => auditor.begin(request).completeBatched({ code: 200 })),
    );
    assert.ok(results.every(({ status }) => status === 'rejected'));
  });

  test('leave out what the policy leaves out', async () => {
    const { sent, auditor } = recorder(false, evaluatorOf({ level: 'None' }));
    await auditor.begin({ ...request, floor: false }).completeBatched({ code: 200 });
    assert.equal(sent.length, 0);
  });
});

test('times have microseconds', () => {
  assert.equal(microTime(1_700_000_000_123.456), '2023-11-14T22:13:20.123456Z');
  assert.match(microTime(), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/u);
});
