import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import type { Journal, NodeFacts } from '../rules/node-facts.ts';
import type { OidcSpec } from '../spec.ts';
import { type DriveJob, driveNode } from './drive-node.ts';
import { restoreMs } from './perform.ts';
import type { NodeSession } from './session.ts';

const JOURNAL: Journal = {
  ...{ version: 1, phase: 'forward', target: 'new', previous: 'old', oldProcesses: ['p'], parks: 1 },
  apply: 'restart',
};
const OIDC = {
  restart: { minimumWaitSeconds: 20, stopTimeoutSeconds: 120, readyTimeoutSeconds: 300 },
} as OidcSpec;
const away = () => new ColonnadeError('unavailable', 'the node does not answer');

const facts = (changes: Partial<NodeFacts> = {}): NodeFacts => ({
  ca: { hash: 'new', ageMs: 5000 },
  keyHash: undefined,
  manifest: { where: 'in-place', ageMs: 4000 },
  processes: [],
  armed: true,
  journal: JOURNAL,
  ...changes,
});

describe('work on a node', () => {
  let nowMs: number;
  beforeEach(() => {
    nowMs = 0;
    mock.method(performance, 'now', () => nowMs);
  });
  afterEach(() => mock.restoreAll());

  /** A look takes a second, by a clock of its own. */
  const job = (look: () => NodeFacts, changes: Partial<DriveJob> = {}) => {
    const steps: string[] = [];
    const tooLong = new AbortController();
    const session = {
      async look() {
        nowMs += 1000;
        if (nowMs > 1_000_000) tooLong.abort();
        return look();
      },
      ready: async () => false,
      run: async (_: unknown, { verb }: { verb: string }) => void steps.push(verb),
    } as unknown as NodeSession;
    const base: DriveJob = {
      ...{ session, access: {} as never, oidc: OIDC, pollMs: 0, stop: tooLong.signal },
      plan: {
        ...{ target: 'new', keyTarget: undefined },
        ...{ minWaitMs: 20_000, goneTimeoutMs: 120_000, readyTimeoutMs: 300_000 },
      },
      payload: { bundle: '', key: undefined },
      gate: async () => ({ gate: undefined, gateReload: undefined }),
      mayBegin: () => true,
      isOutdated: () => false,
      onPhase: async () => {},
      onStep: async () => {},
      onStepFailed: async () => {},
    };
    return { steps, job: { ...base, ...changes } };
  };

  test('that waits for an API server is left when another source is wanted, and no sooner', async () => {
    let looks = 0;
    const starting = job(
      () => {
        looks += 1;
        return facts();
      },
      { isOutdated: () => looks === 5 },
    );
    const end = await driveNode(starting.job);
    assert.deepEqual(end, { end: 'waiting', message: 'the API server is not ready yet' });
    assert.equal(looks, 5);
    assert.deepEqual(starting.steps, []);
  });

  test('is not left for another source while the manifest is parked, or on the way back', async () => {
    const path = [
      facts({ manifest: { where: 'parked', ageMs: 1000 } }),
      facts({ manifest: { where: 'parked', ageMs: 30_000 } }),
    ];
    const parked = job(() => path.shift() ?? facts(), { isOutdated: () => true });
    assert.equal((await driveNode(parked.job)).end, 'waiting');
    assert.deepEqual(parked.steps, ['unpark']);
    let looks = 0;
    const failure = { step: 'start', output: 'x' };
    const back = facts({ ca: { hash: 'old', ageMs: 1000 }, journal: { ...JOURNAL, phase: 'back', failure } });
    const stop = new AbortController();
    const returning = job(
      () => {
        looks += 1;
        if (looks === 3) stop.abort();
        return back;
      },
      { isOutdated: () => true, stop: stop.signal },
    );
    const end = await driveNode(returning.job);
    assert.match(end.end === 'waiting' ? end.message : '', /the rotator is stopping/u);
    assert.equal(looks, 3);
  });

  test('with its manifest parked goes on until the node has brought it back by itself, and no longer', async () => {
    let looks = 0;
    const parked = job(() => {
      looks += 1;
      if (looks > 1) throw away();
      return facts({ manifest: { where: 'parked', ageMs: 1000 } });
    });
    const end = await driveNode(parked.job);
    assert.deepEqual(end, { end: 'waiting', message: 'the node does not answer' });
    assert.ok(looks * 1000 >= restoreMs(OIDC) - 1000, `${looks} looks`);
    assert.ok(looks * 1000 < restoreMs(OIDC) + 10_000, `${looks} looks`);
  });

  test('whose manifest cannot be brought back is told of, with the words of the node', async () => {
    const parked = job(() => facts({ manifest: { where: 'parked', ageMs: restoreMs(OIDC) } }));
    parked.job.session.run = async () => {
      throw new ColonnadeError('unprocessable', 'unpark: exit code 1: mv: Read-only file system');
    };
    assert.deepEqual(await driveNode(parked.job), {
      ...{ end: 'stopped', step: 'unpark', unfinished: true },
      output: 'unpark: exit code 1: mv: Read-only file system',
    });
  });
});
