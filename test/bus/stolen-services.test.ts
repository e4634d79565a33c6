import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type BusUser,
  estateRegisterMinion,
  hooksRun,
  kmsIssueTask,
  kmsOpenForMerger,
  kmsSeal,
  mergerExplain,
  rootTarget,
  startCall,
  tlsPlan,
} from '@colonnade/contracts';
import { type RealBus, startRealBus } from '../support/real-bus.ts';
import { waitFor } from '../support/wait-for.ts';

const { tgtType: tgt_type, tgtId: tgt_id, pillarenv } = rootTarget;
const context = { tgt_type, tgt_id, pillarenv, name: 'x' };

/** Whose nkey, what it answers in the place of that service, who asks, and what the thief is told by it. */
const ANSWERED: readonly (readonly [BusUser, { subject: string }, BusUser, object, string])[] = [
  ['crypto-kms', kmsSeal, 'pillar-api', { items: [{ context, value: 'correct horse' }] }, 'correct horse'],
  [
    'crypto-kms',
    kmsIssueTask,
    'pillar-api',
    { grant: 'a-single-use-grant', task: 't1', template: 'deploy' },
    'a-single-use-grant',
  ],
  [
    'crypto-kms',
    kmsOpenForMerger,
    'pillar-merger',
    { token: 'token-of-a-master', master: 'm1', minion_id: 'web', items: [{ context, enc: 1 }] },
    'token-of-a-master',
  ],
  [
    'pillar-api',
    estateRegisterMinion,
    'pillar-merger',
    { token: 'token-of-a-master', master: 'm1', minion_id: 'web' },
    'token-of-a-master',
  ],
  [
    'pillar-merger',
    mergerExplain,
    'pillar-api',
    { master: 'm1', minion_id: 'web', pillarenv: 'base' },
    'web',
  ],
  [
    'hook-runner',
    hooksRun,
    'pillar-api',
    { event: 'node-deletion', run: 'r', subject: '/masters/m1/minions/web', by: 'ann', parameters: {} },
    'ann',
  ],
  ['tls-rotator', tlsPlan, 'operator', { name: 'ingress' }, 'ingress'],
];

describe('a stolen nkey of a service', () => {
  let bus: RealBus;
  before(async () => {
    bus = await startRealBus();
  });
  after(() => bus[Symbol.asyncDispose]());

  for (const [user, { subject }, caller, request, told] of ANSWERED) {
    test(`of ${user} answers ${subject} in its place, and is told what ${caller} asks with`, async () => {
      const heard: string[] = [];
      const thief = await bus.raw(user);
      const answer = JSON.stringify({ a: 'lie' });
      const serving = thief.subscribe(subject, {
        queue: user,
        callback: (_, message) => {
          heard.push(Buffer.from(message.data).toString());
          message.respond(answer);
        },
      });
      await thief.flush();
      const honest = await bus.raw(caller);
      const said = await honest.request(subject, JSON.stringify(request), { timeout: 2000 });
      assert.equal(Buffer.from(said.data).toString(), answer);
      assert.ok(heard.join().includes(told));
      // Of the queue group nobody is to be left who answers the next test.
      serving.unsubscribe();
      await thief.flush();
    });
  }

  test('of crypto-kms is asked by our own client as well, which seals nothing for an answer it cannot have sealed', async () => {
    const heard: string[] = [];
    const thief = await bus.raw('crypto-kms');
    const callback = (_: unknown, { data }: { data: Uint8Array }) =>
      void heard.push(Buffer.from(data).toString());
    thief.subscribe(kmsSeal.subject, { queue: 'crypto-kms', callback });
    await thief.flush();
    const api = await bus.as('pillar-api');
    const message = { items: [{ context, value: 'battery staple' }] };
    await assert.rejects(api.request(kmsSeal, message, startCall(300)), { code: 'unavailable' });
    await waitFor('the value', () => heard.join().includes('battery staple'));
  });
});
