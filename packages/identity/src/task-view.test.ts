import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encode, TASK_BEAT_SUBJECT, taskStateSubject, zTaskBeat, zTaskEntry } from '@colonnade/contracts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { createTaskView, type TaskViewOptions } from './task-view.ts';

type Entry = { subject: string; seq: number; payload: Uint8Array };

/** A bucket with one entry a subject, as NATS keeps it. */
function newBucket() {
  const entries = new Map<string, Entry>();
  const bucket = { seq: 0, reads: 0, isAway: false };
  const put = (subject: string, payload: Uint8Array) => {
    bucket.seq += 1;
    entries.set(subject, { subject, payload, seq: bucket.seq });
  };
  return {
    bucket,
    beat: () => put(TASK_BEAT_SUBJECT, encode(zTaskBeat, { v: 1, count: bucket.seq })),
    say: (task: string, live: boolean, expires_at_ms: number | null = null) =>
      put(taskStateSubject(task), encode(zTaskEntry, { v: 1, live, expires_at_ms })),
    async read(afterSeq: number): Promise<readonly Entry[]> {
      bucket.reads += 1;
      if (bucket.isAway) throw new Error('away');
      return [...entries.values()].filter(({ seq }) => seq > afterSeq).sort((a, b) => a.seq - b.seq);
    },
    clear() {
      entries.clear();
      bucket.seq = 0;
    },
  };
}

const open = (bucket: ReturnType<typeof newBucket>, more: Partial<TaskViewOptions> = {}) =>
  createTaskView({ read: bucket.read, pollMs: 5, staleMs: 5000, ...more });
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'ok',
    (thrown) => (thrown as { code: string }).code,
  );
const waitOk = (view: ReturnType<typeof open>, task: string) =>
  waitFor('the view', async () => (await codeOf(view.requireLive(task))) === 'ok');

/** Beats as pillar-api sends them. */
function beating(bucket: ReturnType<typeof newBucket>): Disposable {
  const timer = setInterval(bucket.beat, 10);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

test('lives, has ended, was never there, expired', async () => {
  const bucket = newBucket();
  using _beats = beating(bucket);
  bucket.say('a/ü:b', true);
  bucket.say('late', true, Date.now() - 1);
  bucket.say('soon', true, Date.now() + 60_000);
  await using view = open(bucket);
  await waitOk(view, 'a/ü:b');
  assert.equal(await codeOf(view.requireLive('soon')), 'ok');
  for (const task of ['late', 'never', '', 'beat'])
    assert.equal(await codeOf(view.requireLive(task)), 'unauthorized');
  bucket.say('a/ü:b', false);
  await waitFor('its end', async () => (await codeOf(view.requireLive('a/ü:b'))) === 'unauthorized');
});

test('one that was made a moment ago is looked for at once', async () => {
  const bucket = newBucket();
  using _beats = beating(bucket);
  bucket.say('old', true);
  await using view = open(bucket, { pollMs: 60_000 });
  await waitOk(view, 'old');
  bucket.say('new', true);
  assert.equal(await codeOf(view.requireLive('new')), 'ok');
});

test('the beat that is found there may be as old as the bucket: nothing is let through until a next one', async () => {
  const bucket = newBucket();
  bucket.say('a', true);
  bucket.beat();
  await using view = open(bucket);
  await waitFor('some reads', () => bucket.bucket.reads > 5);
  assert.equal(await codeOf(view.requireLive('a')), 'unavailable');
  bucket.beat();
  await waitOk(view, 'a');
});

test('without a new beat, or without an answer, nothing is let through, and it comes back by itself', async () => {
  const bucket = newBucket();
  bucket.say('a', true);
  await using view = open(bucket, { staleMs: 40 });
  {
    using _beats = beating(bucket);
    await waitOk(view, 'a');
  }
  await waitFor('silence to count', async () => (await codeOf(view.requireLive('a'))) === 'unavailable');
  {
    using _beats = beating(bucket);
    await waitOk(view, 'a');
    bucket.bucket.isAway = true;
    await waitFor('the outage to count', async () => (await codeOf(view.requireLive('a'))) === 'unavailable');
    bucket.bucket.isAway = false;
    await waitOk(view, 'a');
  }
});

test('a bucket that was made anew counts from one again, and what lived in the old one lives no more', async () => {
  const bucket = newBucket();
  for (let at = 0; at < 50; at += 1) bucket.say(`t${at}`, true);
  await using view = open(bucket, { staleMs: 60 });
  using _beats = beating(bucket);
  await waitOk(view, 't1');
  bucket.clear();
  bucket.say('t2', true);
  await waitFor(
    'the old one to be forgotten',
    async () => (await codeOf(view.requireLive('t1'))) === 'unauthorized',
  );
  await waitOk(view, 't2');
});
