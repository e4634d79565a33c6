import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { NodeFacts } from './node-facts.ts';
import { type Action, isUnfinished, type NodePlan, nextAction, type Surroundings } from './node-machine.ts';

const PLAN: NodePlan = {
  target: 'new',
  keyTarget: undefined,
  minWaitMs: 20_000,
  goneTimeoutMs: 90_000,
  readyTimeoutMs: 120_000,
  file: '/etc/kubernetes/authentication.yaml',
  reload: { timeoutMs: 180_000, otherwiseRestart: false },
};
const AROUND: Surroundings = {
  ready: true,
  gate: 'it is the only node',
  gateReload: undefined,
  loaded: 'old',
};

/** A node whose API server reads its configuration anew a minute after it has changed, unless it refuses it. */
class ReloadingNode {
  nowMs = 0;
  ca = { hash: 'old', atMs: -1_000_000 };
  journal: NodeFacts['journal'];
  loaded: string | undefined = 'old';
  kept = '';
  steps: string[] = [];
  readonly refuses: string;

  constructor(refuses = '-') {
    this.refuses = refuses;
  }

  facts(): NodeFacts {
    return {
      ca: { hash: this.ca.hash, ageMs: this.nowMs - this.ca.atMs },
      keyHash: undefined,
      manifest: { where: 'in-place', ageMs: 5_000_000 },
      processes: [{ id: 'p', ageMs: 6_000_000 }],
      armed: false,
      journal: this.journal,
    };
  }

  next(plan = PLAN): Action {
    return nextAction(this.facts(), plan, { ...AROUND, loaded: this.loaded });
  }

  apply(action: Action): void {
    this.steps.push(action.do);
    if (action.do === 'begin') {
      if (this.journal === undefined) this.kept = this.ca.hash;
      this.journal = action.journal;
    } else if (action.do === 'roll-back') this.journal = action.journal;
    else if (action.do === 'write')
      this.ca = { hash: action.which === 'target' ? PLAN.target : this.kept, atMs: this.nowMs };
    else if (action.do === 'finish') this.journal = undefined;
    else if (action.do === 'wait') this.steps.pop();
    this.nowMs += 10_000;
    if (this.nowMs - this.ca.atMs >= 60_000 && this.ca.hash !== this.refuses) this.loaded = this.ca.hash;
  }
}

/** Runs until there is nothing to do, or a person is needed. */
function run(node: ReloadingNode, plan = PLAN): Action {
  for (let step = 0; step < 200; step += 1) {
    const action = node.next(plan);
    if (action.do === 'nothing' || action.do === 'fail') return action;
    node.apply(action);
    if (action.do === 'finish' && action.failure !== undefined) return action;
  }
  throw new Error(`it goes on for ever: ${node.steps.slice(-10).join(' ')}`);
}

describe('a node whose API server reads the file anew', () => {
  test('is written and proven, never restarted, also as the only one', () => {
    const node = new ReloadingNode();
    assert.deepEqual(run(node), { do: 'nothing' });
    assert.deepEqual(node.steps, ['begin', 'write', 'finish']);
  });

  test('ends the same, wherever whoever works on it is killed', () => {
    for (const dies of [1, 2, 3]) {
      const node = new ReloadingNode();
      for (let step = 0; step < dies; step += 1) node.apply(node.next());
      assert.equal(isUnfinished(node.facts()), true);
      assert.deepEqual(run(node), { do: 'nothing' });
      assert.equal(node.loaded, 'new');
    }
  });

  test('that refuses the file gets the old one back', () => {
    const node = new ReloadingNode('new');
    const last = run(node);
    assert.match(
      JSON.stringify(last),
      /"do":"finish","failure":\{"step":"reload","output":".*refused this one/u,
    );
    assert.equal(node.ca.hash, 'old');
    assert.deepEqual(node.steps, ['begin', 'write', 'roll-back', 'write', 'finish']);
  });

  test('that has the file by another hand is not done until its API server says so', () => {
    const node = new ReloadingNode('new');
    node.ca.hash = 'new';
    assert.equal(node.next().do, 'begin');
    node.loaded = 'new';
    assert.equal(node.next().do, 'nothing');
  });

  test('that does not tell what it runs with is not begun, or restarted where that is allowed', () => {
    const node = new ReloadingNode();
    node.loaded = undefined;
    const stop = node.next();
    assert.match(JSON.stringify(stop), /"do":"fail","step":"reload","reason":".*restartWithoutMetric/u);
    const plan = { ...PLAN, reload: { timeoutMs: 1, otherwiseRestart: true } };
    const held = nextAction(node.facts(), plan, { ...AROUND, loaded: undefined });
    assert.deepEqual(held, { do: 'wait', phase: 'Waiting', reason: 'it is the only node' });
    const begun = nextAction(node.facts(), plan, { ...AROUND, gate: undefined, loaded: undefined });
    assert.equal(begun.do === 'begin' && begun.journal.apply, 'restart');
    node.apply(begun);
    node.apply(node.next(plan));
    // A metric that comes meanwhile does not change what was begun.
    node.loaded = 'old';
    assert.equal(nextAction(node.facts(), plan, { ...AROUND, gate: undefined }).do, 'arm');
  });

  test('that stops to tell while it is waited for is given up in time, and not restarted', () => {
    const node = new ReloadingNode('new');
    for (const _ of ['begin', 'write']) node.apply(node.next());
    node.loaded = undefined;
    const plan = { ...PLAN, reload: { timeoutMs: 180_000, otherwiseRestart: true } };
    const around = { ...AROUND, gate: undefined, loaded: undefined };
    assert.equal(nextAction(node.facts(), plan, around).do, 'wait');
    node.nowMs += 200_000;
    assert.equal(nextAction(node.facts(), plan, around).do, 'roll-back');
  });
});
