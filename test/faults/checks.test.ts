import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { type BridgeReply, ColonnadeError, type ErrorCode } from '@colonnade/contracts';
import type { ApiClient } from '@colonnade/embedded';
import type { RunningServer } from '@colonnade/embedded/servers';
import { fromPlain, type Value } from '@colonnade/value';
import { createRandom } from '../support/random.ts';
import { tempDir } from '../support/temp.ts';
import { waitFor } from '../support/wait-for.ts';
import { checkLeaks } from './checks/check-run.ts';
import type { StreamedEvent } from './checks/streams.ts';
import type { Version } from './checks/truth.ts';
import { checkEvents, checkWrites } from './checks/writes.ts';
import { createHistory, type History, type Operation } from './history.ts';
import { watchEnd } from './inject.ts';
import { canaryOf, REGISTERS, valueNamed } from './workload/estate.ts';
import { createSender } from './workload/http.ts';
import { askOnce } from './workload/master.ts';

/** What the checks find in histories that are made up: each kind of violation is found out, and nothing is found in a whole one. */

const CANARY = canaryOf(7);
const WEB = 'm1/web';
const kindsOf = ({ violations }: History) => violations.map(({ kind }) => kind);

const version = (tick: number, id: string): Version => ({ tick, id, pid: 'p1', op: 'update' });
const event = (tick: number, pid = 'p1'): StreamedEvent => ({
  ...{ id: `e.${tick}.0`, type: 'pillar.updated', tick, data: { pid } },
});

function writesFound(outcome: Operation['outcome'], versions: readonly Version[]): string[] {
  const history = createHistory();
  const times = { call: 1, return: 2 };
  const write = { client: 1, key: 'k', kind: 'cas', expect: 'a', value: 'b', tick: 2, pid: 'p1' } as const;
  history.operations.push({ ...write, ...times, outcome });
  checkWrites(history, new Map([['k', versions]]));
  return kindsOf(history);
}

test('writes: one that was refused and is there, and one that is there twice', () => {
  assert.deepEqual(writesFound('ok', [version(1, 'a'), version(2, 'b')]), []);
  assert.deepEqual(writesFound('ok', [version(1, 'a'), version(3, 'b')]), ['lost write']);
  assert.deepEqual(writesFound('refused', [version(1, 'a')]), []);
  assert.deepEqual(writesFound('refused', [version(2, 'b')]), ['refused write applied']);
  assert.deepEqual(writesFound('unknown', [version(2, 'b'), version(3, 'b')]), ['write applied twice']);
});

test('events: one of a change that never was', () => {
  const found = (events: readonly StreamedEvent[]) => {
    const history = createHistory();
    checkEvents(history, new Map([['k', [version(1, 'a')]]]), events);
    return kindsOf(history);
  };
  assert.deepEqual(found([event(1)]), []);
  assert.deepEqual(found([event(1), event(2)]), ['event of nothing']);
});

test('leaks: a secret in a file of any part, also in base64', async () => {
  await using dir = await tempDir('leaks');
  const found = async (text: string) => {
    await writeFile(path.join(dir.path, 'some.log'), text);
    const history = createHistory();
    await checkLeaks(history, [dir.path], CANARY);
    return kindsOf(history);
  };
  assert.deepEqual(await found('nothing'), []);
  assert.deepEqual(await found(`x ${CANARY} y`), ['leak']);
  assert.deepEqual(await found(`x ${Buffer.from(`y${CANARY}z`).toString('base64')}`), ['leak']);
});

test('answers over HTTP: a refusal that blames the caller, a fault that no retry would mend, and a secret in an error', async () => {
  const found = async (status: number, problem: object) => {
    const history = createHistory();
    const answer = { status, headers: new Headers(), value: fromPlain(problem) };
    const send = createSender({ send: async () => answer } as unknown as ApiClient, history, CANARY);
    const { outcome } = await send('PUT', '/pillars/p1');
    return [outcome, ...kindsOf(history)];
  };
  assert.deepEqual(await found(412, { code: 'precondition_failed' }), ['refused']);
  assert.deepEqual(await found(503, { code: 'unavailable' }), ['unknown']);
  assert.deepEqual(await found(403, { code: 'forbidden' }), ['refused', 'wrong refusal']);
  assert.deepEqual(await found(500, { code: 'internal' }), ['unknown', 'wrong refusal']);
  assert.deepEqual(await found(503, { code: 'unavailable', detail: CANARY }), ['unknown', 'leak']);
});

const own = REGISTERS.filter(({ seenBy }) => seenBy.includes(WEB));
const whole = (): Record<string, Value> =>
  Object.fromEntries(
    own.map(({ name, isSecret }) => [name, valueNamed('w1-1', isSecret ? CANARY : undefined)]),
  );

async function askedFor(reply: BridgeReply | Error): Promise<History> {
  const history = createHistory();
  const ask = async () => {
    if (reply instanceof Error) throw reply;
    return reply;
  };
  const stop = new AbortController().signal;
  await askOnce(
    { ...{ client: 1, master: 'm1', random: createRandom(1) }, ask, history, canary: CANARY, stop },
    WEB,
  );
  return history;
}

const given = async (pillar: Record<string, Value>) => {
  const history = await askedFor({ id: 'x', ok: true, pillar, clock: 5n } as unknown as BridgeReply);
  assert.equal(history.merges.length, 1);
  return kindsOf(history);
};
const refusedWith = async (code: ErrorCode, message = '') =>
  kindsOf(await askedFor({ id: 'x', ok: false, error: { code, message } } as unknown as BridgeReply));

test('merged pillars: a value that is not whole, a secret not opened, one of another minion', async () => {
  const [plain, secret] = [own.find((one) => !one.isSecret), own.find((one) => one.isSecret)];
  assert.ok(plain && secret);
  assert.deepEqual(await given(whole()), []);
  const { float: _, ...torn } = valueNamed('w1-1', undefined) as Record<string, Value>;
  assert.deepEqual(await given({ ...whole(), [plain.name]: torn }), ['torn value']);
  const asInteger = { ...(valueNamed('w1-1', undefined) as Record<string, Value>), float: 1n };
  assert.deepEqual(await given({ ...whole(), [plain.name]: asInteger }), ['torn value']);
  assert.deepEqual(await given({ ...whole(), [secret.name]: fromPlain({ $enc: { v: 1 } }) }), ['torn value']);
  assert.deepEqual(await given({ ...whole(), theirs: 1n }), ['foreign pillar']);
});

test('refused merges: what blames the master, what is no answer of ours, and a secret in an error', async () => {
  assert.deepEqual(await refusedWith('unavailable'), []);
  assert.deepEqual(await refusedWith('forbidden'), ['wrong refusal']);
  assert.deepEqual(await refusedWith('unavailable', `cannot open ${CANARY}`), ['leak']);
  assert.deepEqual(kindsOf(await askedFor(new ColonnadeError('unavailable', ''))), []);
  assert.deepEqual(kindsOf(await askedFor(new TypeError('x is not a function'))), ['wrong reply']);
});

test('a process that ends by itself, and is started again', async () => {
  const history = createHistory();
  const ended = [{ code: 1, signal: null }];
  let started = 0;
  const part = {
    endedByItself: () => (ended.length > 0 ? Promise.resolve(ended.pop()) : new Promise(() => {})),
    restart: async () => {
      started += 1;
    },
  } as unknown as RunningServer;
  watchEnd('crypto-kms', part, history);
  await waitFor('its start', () => started > 0);
  assert.deepEqual(history.violations, [{ kind: 'ended by itself', detail: 'crypto-kms: exit code 1' }]);
});
