import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Bus, Delivery, Verdict } from '@colonnade/bus';
import {
  type CloudEvent,
  cloudEventType,
  type EventType,
  hooksConsumer,
  type Touched,
} from '@colonnade/contracts';
import { createLogger, createMetrics } from '@colonnade/service-kit';
import { createEvents } from './events.ts';
import { planRun } from './plan-run.ts';
import type { Runner } from './runner.ts';
import { takeEvents } from './take-events.ts';

/** One batch in hands whose hooks end when the test says so. */
function takeBatch(
  sent: readonly [EventType, object][],
  note: (touched: Touched, gone: boolean) => void,
  check?: (event: CloudEvent) => void,
) {
  const batch = sent.map(([type, data], i): Delivery => {
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
  });
  const release = Promise.withResolvers<void>();
  let answer: Promise<readonly Verdict[]> | undefined;
  const bus: Pick<Bus, 'consume'> = {
    async consume(_, { handle }) {
      answer = handle(batch, undefined as never) as Promise<readonly Verdict[]>;
    },
  };
  const runner: Runner = {
    ended: () => undefined,
    hasHooks: async () => true,
    async run() {
      await release.promise;
      return { status: 'ok', results: [], notRun: [], fault: undefined };
    },
  };
  const silent = createLogger({ service: 'hook-runner', level: 'fatal', destination: { write() {} } });
  const events = createEvents(silent, createMetrics('hook-runner'));
  const never = new AbortController().signal;
  const source = { consumer: hooksConsumer, plan: planRun, note, ...(check === undefined ? {} : { check }) };
  void takeEvents(bus, source, runner, 2, events, { taking: never, hooks: never });
  return async () => {
    release.resolve();
    return (await answer)?.map(({ kind }) => kind);
  };
}

const east = (id: string) => ({ master: 'east', id });
const all = { kind: 'all' };

test('whom an event touches is noted before its hooks end; a deletion after them', async () => {
  const noted: Touched[] = [];
  const told: Touched[] = [];
  const end = takeBatch(
    [
      ['minion.deleted', east('gone')],
      ['pillar.updated', { tgt_type: 'collection', tgt_id: 'web', pillarenv: 'collection:web;user:ann' }],
    ],
    (touched, gone) => {
      noted.push(touched);
      if (gone) told.push(touched);
    },
  );
  assert.deepEqual(noted.splice(0), [{ kind: 'collection', id: 'web' }]);
  assert.deepEqual(told, []);
  assert.deepEqual(await end(), ['done', 'done']);
  assert.deepEqual(noted, [{ kind: 'minion', ...east('gone') }]);
  assert.deepEqual(told, noted);
});

test('who has moved touches everybody, and is gone from where it was', async () => {
  const noted: [Touched, boolean][] = [];
  const data = { master: 'west', id: 'web-1', from_master: 'east' };
  const end = takeBatch([['minion.moved', data]], (touched, gone) => noted.push([touched, gone]));
  assert.deepEqual(await end(), ['done']);
  assert.deepEqual(noted, [
    [all, false],
    [{ kind: 'minion', ...east('web-1') }, true],
  ]);
});

test('an event that no hooks can be run for may concern everybody', async () => {
  const noted: Touched[] = [];
  const end = takeBatch(
    [
      ['minion.registered', { id: 7 }],
      ['minion.deleted', { id: 7 }],
      ['pillar.updated', undefined as never],
    ],
    (touched) => noted.push(touched),
  );
  assert.deepEqual(await end(), ['poison', 'poison', 'poison']);
  assert.deepEqual(noted, [all, all, all]);
});

test('an event that its publisher may not tell touches nobody', async () => {
  const noted: Touched[] = [];
  const refuse = () => {
    throw new Error('not told on its own subject');
  };
  const end = takeBatch([['minion.registered', east('new')]], (touched) => noted.push(touched), refuse);
  assert.deepEqual(await end(), ['poison']);
  assert.deepEqual(noted, []);
});

test('what could not be noted comes again', async () => {
  const end = takeBatch(
    [
      ['minion.deleted', east('gone')],
      ['minion.registered', east('new')],
    ],
    () => {
      throw new Error('disk I/O error');
    },
  );
  assert.deepEqual(await end(), ['retry', 'retry']);
});
