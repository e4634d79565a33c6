import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONSUMERS } from './consumers.ts';
import { BUS_USERS } from './endpoints.ts';
import { EVENT_TYPES, EVENTS_SUBJECTS, eventSubject } from './events.ts';
import { allBusRights, busRights, ENDPOINTS, inboxPrefix, replyPrefixes } from './permissions.ts';

test('no two endpoints share a subject or a name', () => {
  assert.equal(new Set(ENDPOINTS.map((e) => e.subject)).size, ENDPOINTS.length);
  assert.equal(new Set(ENDPOINTS.map((e) => e.name)).size, ENDPOINTS.length);
});

test('a subject with a caller in it belongs to that caller alone', () => {
  const short = { api: 'pillar-api', merger: 'pillar-merger' } as const;
  for (const endpoint of ENDPOINTS) {
    const caller = short[endpoint.subject.split('.')[4] as keyof typeof short];
    if (caller !== undefined) assert.deepEqual(endpoint.callers, [caller], endpoint.subject);
  }
});

test('a user reads no inbox but its own, and only provisioner touches streams', () => {
  for (const [user, rights] of allBusRights()) {
    const inboxes = rights.subscribe.filter((s) => s.startsWith('_INBOX'));
    assert.deepEqual(inboxes, [`${inboxPrefix(user)}.>`]);
    const api = rights.publish.filter(
      (s) => s.startsWith('$JS.API.STREAM') && !/\.(INFO|NAMES|LIST)(\.|$)/u.test(s),
    );
    assert.equal(api.length > 0, user === 'provisioner', user);
  }
});

test('replies go to callers only', () => {
  for (const user of BUS_USERS) {
    const published = busRights(user).publish.filter((s) => s.startsWith('_INBOX.'));
    assert.deepEqual(
      published,
      replyPrefixes(user).map((p) => `${p}>`),
    );
  }
});

test('a consumer is read by its own user alone: next messages, information, acknowledgements, nothing else', () => {
  for (const [user, rights] of allBusRights()) {
    const own = CONSUMERS.filter((c) => c.user === user);
    const acks = rights.publish.filter((s) => s.startsWith('$JS.ACK'));
    assert.deepEqual(
      acks,
      own.map(({ stream, durable }) => `$JS.ACK.${stream}.${durable}.>`),
    );
    const next = rights.publish.filter((s) => s.includes('.CONSUMER.MSG.NEXT.'));
    assert.equal(next.length, own.length);
    const changes = rights.publish.filter((s) => /\.CONSUMER\.(CREATE|DELETE|DURABLE)/u.test(s));
    assert.equal(changes.length > 0, user === 'provisioner', user);
  }
});

test('nobody may publish every event there is: each event has one user, who may publish it by its name', () => {
  const prefix = EVENTS_SUBJECTS.slice(0, -1);
  const publishers = new Map<string, string>();
  for (const [user, { publish }] of allBusRights())
    for (const subject of publish.filter((one) => one.startsWith(prefix))) {
      assert.doesNotMatch(subject, /[*>]/u, `${user}: ${subject}`);
      assert.equal(publishers.get(subject), undefined, `${subject} is of two users`);
      publishers.set(subject, user);
    }
  assert.deepEqual(
    [...publishers].filter(([, user]) => user === 'pillar-api').map(([subject]) => subject),
    EVENT_TYPES.map(eventSubject),
  );
});
