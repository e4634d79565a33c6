import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AUDIT_TRUNCATED, decodeAuditMessage, encode, LIMITS, zAuditEvent } from '@colonnade/contracts';
import fc from 'fast-check';
import { buildEvent, encodeEvent, MAX_EVENT_BYTES } from './build-event.ts';
import type { AuditOutcome, AuditRequest } from './request.ts';

const facts = {
  level: 'RequestResponse',
  auditID: 'a',
  stage: 'ResponseComplete',
  receivedAt: 'now',
} as const;
const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\n', '\u2028', '\ud800', '\0', '"\\'));
const longText = fc.oneof(
  text,
  fc.integer({ min: 0, max: 3_000_000 }).map((n) => '\u2028'.repeat(n)),
);
const texts = fc.array(text, { maxLength: 200 });

const anyRequest: fc.Arbitrary<AuditRequest> = fc.record({
  verb: text,
  requestURI: longText,
  user: fc.record({ username: longText, groups: texts }),
  sourceIPs: texts,
  userAgent: longText,
  objectRef: fc.record({ resource: text, namespace: longText, name: text, subresource: text, uid: text }),
});
const anyOutcome: fc.Arbitrary<AuditOutcome> = fc.record({
  code: fc.integer({ min: 100, max: 599 }),
  reason: text,
  message: longText,
  annotations: fc.dictionary(text, longText),
  requestObject: fc.oneof(fc.constant('x'.repeat(4_200_000)), fc.constant(null)),
});

describe('an event', () => {
  test('fits a message and can be read again, whatever a client sends', () => {
    fc.assert(
      fc.property(anyRequest, anyOutcome, (request, outcome) => {
        const bytes = encodeEvent(buildEvent(request, { ...facts, outcome }));
        assert.ok(bytes.length <= MAX_EVENT_BYTES && bytes.length < LIMITS.natsPayloadBytes);
        assert.ok(!Buffer.from(bytes).includes('\n'), 'one line');
        const [event, ...others] = decodeAuditMessage(bytes);
        assert.equal(others.length, 0);
        const isTruncated = event?.annotations?.[AUDIT_TRUNCATED] === 'true';
        assert.equal(isTruncated, typeof outcome.requestObject === 'string');
        assert.equal(event?.requestObject, isTruncated ? undefined : null);
      }),
      { numRuns: 60 },
    );
  });

  test('holds no token that a client put where none belongs', () => {
    const secret = 'S'.repeat(43);
    const token = `col_0123456789abcdef_${secret}`;
    const once = `cole_01234567-89ab-cdef_${secret}`;
    const jwt = `eyJ${'a'.repeat(20)}.${'b'.repeat(20)}.${secret}`;
    for (const [shown, hidden] of [
      [token, 'col_0123456789abcdef_*******'],
      [once, 'cole_01234567-89ab-cdef_*******'],
      [jwt, '*******'],
    ] as const) {
      const request = {
        ...{ verb: 'delete', requestURI: `/tokens/${shown}?token=${shown}`, userAgent: `curl ${shown}` },
        user: { username: 'alice', groups: [] },
        objectRef: { resource: 'tokens', name: shown, uid: shown },
      };
      const event = buildEvent(request, { ...facts, outcome: { code: 404, message: `no ${shown}` } });
      assert.ok(!JSON.stringify(event).includes(secret));
      assert.equal(event.requestURI, `/tokens/${hidden}?token=${hidden}`);
      assert.equal(event.objectRef?.name, hidden);
    }
    // Where it is cut it is still hidden.
    const long = buildEvent(
      { verb: 'get', requestURI: `/${'x'.repeat(2000)}${token}`, user: { username: 'a', groups: [] } },
      { ...facts, outcome: undefined },
    );
    assert.ok(!long.requestURI.includes('SS'));
  });

  test('without bodies is written as its schema writes it', () => {
    fc.assert(
      fc.property(
        anyRequest,
        anyOutcome,
        fc.boolean(),
        (request, { requestObject: _, ...outcome }, hasEnded) => {
          const event = buildEvent(request, { ...facts, outcome: hasEnded ? outcome : undefined });
          assert.deepEqual(Buffer.from(encodeEvent(event)), Buffer.from(encode(zAuditEvent, event)));
        },
      ),
      { numRuns: 60 },
    );
    const bare = buildEvent(
      { verb: 'get', requestURI: '/', user: { username: 'a', groups: [] } },
      {
        ...{ ...facts, outcome: { code: 200, annotations: { 10: 'a', 9: 'b', __proto__: 'c' } } },
      },
    );
    assert.deepEqual(Buffer.from(encodeEvent(bare)), Buffer.from(encode(zAuditEvent, bare)));
  });

  test('without its bodies stays far below what a message carries', () => {
    const long = '\u2028'.repeat(10_000);
    const many = Array(1000).fill(long);
    const request = {
      verb: long,
      requestURI: long,
      user: { username: long, groups: many },
      sourceIPs: many,
      userAgent: long,
      objectRef: {
        resource: long,
        namespace: long,
        name: long,
        uid: long,
        subresource: long,
        apiGroup: long,
      },
    };
    const annotations = Object.fromEntries(many.map((value, i) => [`${i}${long}`, value]));
    const outcome = { code: 500, reason: long, message: long, annotations };
    const bytes = encodeEvent(buildEvent(request, { ...facts, outcome }));
    assert.ok(bytes.length < MAX_EVENT_BYTES / 2, `${bytes.length}`);
  });

  test('of no resource has no bodies', () => {
    const request = { verb: 'get', requestURI: '/metrics', user: { username: 'a', groups: [] } };
    const event = buildEvent(request, {
      ...facts,
      outcome: { code: 200, requestObject: 1n, responseObject: 2n },
    });
    assert.deepEqual(
      [event.requestObject, event.responseObject, event.objectRef],
      [undefined, undefined, undefined],
    );
  });
});
