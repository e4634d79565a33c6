import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Bus, Delivery, Verdict } from '@colonnade/bus';
import { cloudEventType, type EventType, hooksConsumer, type Touched } from '@colonnade/contracts';
import { createLogger, createMetrics } from '@colonnade/service-kit';
import { createEvents } from './events.ts';
import { planRun } from './plan-run.ts';
import type { Runner } from './runner.ts';
import type { MinionName } from './store/minion-name.ts';
import { takeEvents } from './take-events.ts';
import { takeTouches } from './take-touches.ts';

/** A message that tells of what has happened. */
function deliveryOf([type, data]: Sent, i: number): Delivery {
  const about = { id: `i.${i}.0`, source: 'urn:colonnade:estate', subject: `/${i}`, clock: '1' };
  const event = {
    specversion: '1.0',
    type: cloudEventType(type),
    time: '2026-01-31T12:00:00.000Z',
    ...about,
  };
  const payload = JSON.stringify({ ...event, datacontenttype: 'application/json', incarnation: 'i', data });
  const sentAs = { subject: 'x', tries: 1, storedAtNs: 0n };
  return { ...sentAs, seq: i + 1, payload: Buffer.from(payload) };
}
type Sent = readonly [EventType, object];

/** A bus that hands over one batch, and what became of it. */
function busWith(sent: readonly Sent[]) {
  let answer: Promise<readonly Verdict[]> | undefined;
  const bus: Pick<Bus, 'consume'> = {
    async consume(_, { handle }) {
      answer = handle(sent.map(deliveryOf), undefined as never) as Promise<readonly Verdict[]>;
    },
  };
  return { bus, kinds: async () => (await answer)?.map(({ kind }) => kind) };
}

const silent = createLogger({ service: 'hook-runner', level: 'fatal', destination: { write() {} } });
const events = createEvents(silent, createMetrics('hook-runner'));
const never = new AbortController().signal;

/** One batch in hands whose hooks end when the test says so. */
function takeBatch(sent: readonly Sent[], noteGone: (minion: MinionName) => void) {
  const release = Promise.withResolvers<void>();
  const { bus, kinds } = busWith(sent);
  const runner: Runner = {
    ended: () => undefined,
    hasHooks: async () => true,
    async run() {
      await release.promise;
      return { status: 'ok', results: [], notRun: [], fault: undefined };
    },
  };
  const source = { consumer: hooksConsumer, plan: planRun, noteGone };
  void takeEvents(bus, source, runner, 2, events, { taking: never, hooks: never });
  return async () => {
    release.resolve();
    return await kinds();
  };
}

const east = (id: string) => ({ master: 'east', id });
const all = { kind: 'all' };
const broken = () => {
  throw new Error('disk I/O error');
};

/** Whom a batch touches, and what became of it. */
async function touchesOf(sent: readonly Sent[], check?: () => void) {
  const noted: (readonly Touched[])[] = [];
  const { bus, kinds } = busWith(sent);
  await takeTouches(bus, check, (touched) => noted.push(touched), events, never);
  return { noted, kinds: await kinds() };
}

test('a minion is gone when the hooks of its deletion have ended, or when it has moved', async () => {
  const gone: MinionName[] = [];
  const web = { tgt_type: 'collection', tgt_id: 'web', pillarenv: 'collection:web;user:ann' };
  const moved = { master: 'west', id: 'web-1', from_master: 'east' };
  const end = takeBatch(
    [
      ['minion.deleted', east('gone')],
      ['pillar.updated', web],
      ['minion.moved', moved],
    ],
    (minion) => gone.push(minion),
  );
  await nextTurn();
  assert.deepEqual(gone, []);
  assert.deepEqual(await end(), ['done', 'done', 'done']);
  assert.deepEqual(gone, [east('gone'), east('web-1')]);
});

test('of a deletion that no hooks can be run for nobody is gone', async () => {
  const end = takeBatch([['minion.deleted', { id: 7 }]], () => assert.fail());
  assert.deepEqual(await end(), ['poison']);
});

test('who is gone and could not be noted comes again', async () => {
  const end = takeBatch([['minion.deleted', east('gone')]], broken);
  assert.deepEqual(await end(), ['retry']);
});

test('whom events touch is noted whatever their hooks do, all of a batch at once; what cannot be read may concern everybody', async () => {
  const found = await touchesOf([
    ['minion.deleted', east('gone')],
    ['pillar.updated', { tgt_type: 'collection', tgt_id: 'web', pillarenv: 'collection:web;user:ann' }],
    ['minion.registered', { id: 7 }],
    ['pillar.updated', undefined as never],
  ]);
  const wanted = [{ kind: 'minion', ...east('gone') }, { kind: 'collection', id: 'web' }, all, all];
  assert.deepEqual(found, { noted: [wanted], kinds: ['done', 'done', 'done', 'done'] });
});

test('an event that its publisher may not tell touches nobody', async () => {
  const refuse = () => {
    throw new Error('not told on its own subject');
  };
  assert.deepEqual(await touchesOf([['minion.registered', east('new')]], refuse), {
    noted: [],
    kinds: ['done'],
  });
});

test('whom an event touches and could not be noted comes again', async () => {
  const { bus, kinds } = busWith([['minion.registered', east('new')]]);
  await takeTouches(bus, undefined, broken, events, never);
  assert.deepEqual(await kinds(), ['retry']);
});
