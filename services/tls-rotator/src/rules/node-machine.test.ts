import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type Journal, NO_FILE, type NodeFacts, parseJournal } from './node-facts.ts';
import { type Action, isUnfinished, type NodePlan, nextAction } from './node-machine.ts';

const PLAN: NodePlan = {
  target: 'new',
  keyTarget: undefined,
  minWaitMs: 20_000,
  goneTimeoutMs: 90_000,
  readyTimeoutMs: 120_000,
};

/** How the node of a test behaves. */
type Habits = {
  /** After TERM. */
  stopMs: number;
  /** From the manifest's appearance to a process, and to its readiness. */
  startMs: number;
  /** With which file the API server never gets ready. */
  breaksWith: string;
  neverStops: boolean;
};

const GOOD: Habits = { stopMs: 30_000, startMs: 5_000, breaksWith: '-', neverStops: false };

/** A node with its kubelet, of which only what matters is left; every effect is one that a kill may be the last of. */
class SimulatedNode {
  nowMs = 1_000_000;
  ca: { hash: string; atMs: number } | undefined = { hash: 'old', atMs: 0 };
  where: NodeFacts['manifest']['where'] = 'in-place';
  movedAtMs = 0;
  processes = [{ id: 'first', startedAtMs: 500_000, loaded: 'old', endsAtMs: Number.POSITIVE_INFINITY }];
  armedUntilMs = 0;
  journal: Journal | undefined;
  kept: string | undefined;
  effects = 0;
  restarts = 0;
  readonly habits: Habits;
  killAfter: number;

  constructor(habits: Habits, killAfter = Number.POSITIVE_INFINITY) {
    this.habits = habits;
    this.killAfter = killAfter;
  }

  facts(): NodeFacts {
    return {
      ca: this.ca && { hash: this.ca.hash, ageMs: this.nowMs - this.ca.atMs },
      keyHash: undefined,
      manifest: { where: this.where, ageMs: this.nowMs - this.movedAtMs },
      processes: this.processes.map(({ id, startedAtMs }) => ({ id, ageMs: this.nowMs - startedAtMs })),
      armed: this.isArmed(),
      journal: this.journal && parseJournal(JSON.stringify(this.journal)),
    };
  }

  isArmed(): boolean {
    return this.nowMs < this.armedUntilMs;
  }

  ready(): boolean {
    const [one] = this.processes;
    if (one === undefined || one.endsAtMs < Number.POSITIVE_INFINITY) return false;
    return one.loaded !== this.habits.breaksWith && this.nowMs - one.startedAtMs >= this.habits.startMs;
  }

  tick(ms: number): void {
    this.nowMs += ms;
    if (this.where === 'parked' && this.armedUntilMs > 0 && this.nowMs >= this.armedUntilMs)
      this.move('in-place');
    this.processes = this.processes.filter(({ endsAtMs }) => endsAtMs > this.nowMs);
    if (this.where === 'in-place' && this.processes.length === 0) {
      this.restarts += 1;
      const loaded = this.ca?.hash ?? NO_FILE;
      const endsAtMs = Number.POSITIVE_INFINITY;
      this.processes = [{ id: `restart-${this.restarts}`, startedAtMs: this.nowMs, loaded, endsAtMs }];
    }
  }

  private effect(change: () => void): void {
    if (this.effects >= this.killAfter) throw new Error('killed');
    this.effects += 1;
    change();
  }

  apply(action: Action): void {
    const effects = this.effectsOf(action);
    if (effects.length === 0) this.tick(1000);
    for (const effect of effects) this.effect(effect);
  }

  private effectsOf(action: Action): (() => void)[] {
    switch (action.do) {
      case 'begin':
        return [() => this.keep(), () => this.note(action.journal)];
      case 'write':
        return [() => this.write(action.which)];
      case 'arm':
        return [() => this.arm()];
      case 'park':
        return [() => this.arm(), () => this.note(action.journal), () => this.park()];
      case 'unpark':
        return [() => this.move('in-place')];
      case 'roll-back':
        return [() => this.note(action.journal)];
      case 'finish':
        return [() => this.disarm(), () => this.note(undefined)];
      default:
        return [];
    }
  }

  private keep(): void {
    if (this.journal === undefined) this.kept = this.ca?.hash;
  }

  private note(journal: Journal | undefined): void {
    this.journal = journal;
  }

  private write(which: 'target' | 'previous'): void {
    const hash = which === 'target' ? PLAN.target : this.kept;
    this.ca = hash === undefined ? undefined : { hash, atMs: this.nowMs };
  }

  private arm(): void {
    this.armedUntilMs = this.nowMs + 200_000;
  }

  private disarm(): void {
    this.armedUntilMs = 0;
  }

  private move(where: 'in-place' | 'parked'): void {
    this.where = where;
    this.movedAtMs = this.nowMs;
  }

  private park(): void {
    this.move('parked');
    const endsAtMs = this.habits.neverStops ? Number.POSITIVE_INFINITY : this.nowMs + this.habits.stopMs;
    this.processes = this.processes.map((p) => ({ ...p, endsAtMs }));
  }
}

/** Runs until there is nothing to do or a person is needed. */
function run(node: SimulatedNode, plan = PLAN, trace: string[] = []): Action {
  for (let step = 0; step < 5000; step += 1) {
    const action = nextAction(node.facts(), plan, { ready: node.ready(), gate: undefined });
    if (action.do !== 'wait' && trace.at(-1) !== action.do) trace.push(action.do);
    if (action.do === 'nothing' || action.do === 'fail') return action;
    node.apply(action);
    if (action.do === 'finish' && action.failure !== undefined) return action;
    node.tick(10);
  }
  throw new Error(`it goes on for ever: ${trace.slice(-20).join(' ')}`);
}

describe('a node', () => {
  test('is written, restarted and proven, in this order', () => {
    const node = new SimulatedNode(GOOD);
    const trace: string[] = [];
    assert.deepEqual(run(node, PLAN, trace), { do: 'nothing' });
    assert.deepEqual(trace, ['begin', 'write', 'arm', 'park', 'unpark', 'finish', 'nothing']);
    assert.equal(node.processes[0]?.loaded, 'new');
    assert.equal(node.restarts, 1);
  });

  test('ends the same, wherever whoever works on it is killed', () => {
    const whole = new SimulatedNode(GOOD);
    run(whole);
    assert.ok(whole.effects >= 8);
    for (let killAfter = 0; killAfter < whole.effects; killAfter += 1) {
      const node = new SimulatedNode(GOOD, killAfter);
      assert.throws(() => run(node), /killed/u);
      if (killAfter > 1) assert.ok(isUnfinished(node.facts()), `${killAfter}`);
      const next = Object.assign(new SimulatedNode(GOOD), node, { killAfter: Number.POSITIVE_INFINITY });
      assert.deepEqual(run(next), { do: 'nothing' }, `killed after ${killAfter}`);
      assert.equal(next.processes[0]?.loaded, 'new', `killed after ${killAfter}`);
      assert.equal(next.restarts, 1, `killed after ${killAfter}`);
    }
  });

  test('is never without its manifest unless a restorer is armed, whatever happens', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 6 }),
        fc.constantFrom('-', 'new'),
        fc.integer({ min: 0, max: 80_000 }),
        fc.constantFrom(0, 190_000, 210_000),
        (kills, breaksWith, stopMs, idleMs) => {
          let node = new SimulatedNode({ ...GOOD, breaksWith, stopMs });
          for (const kill of kills) {
            node = Object.assign(new SimulatedNode(node.habits), node, { killAfter: node.effects + kill });
            try {
              run(node);
            } catch (thrown) {
              assert.match(String(thrown), /killed/u);
              if (node.where === 'parked') assert.ok(node.isArmed());
              node.tick(idleMs);
              if (idleMs > 200_000) assert.equal(node.where, 'in-place', 'the restorer brings it back');
            }
          }
          run(Object.assign(node, { killAfter: Number.POSITIVE_INFINITY }));
          assert.equal(node.where, 'in-place');
        },
      ),
    );
  });

  test('gets the old CA back when its API server does not come back with the new one', () => {
    const node = new SimulatedNode({ ...GOOD, breaksWith: 'new' });
    const trace: string[] = [];
    const last = run(node, PLAN, trace);
    assert.deepEqual(last, { do: 'finish', failure: { step: 'start', output: 'it runs but is not ready' } });
    assert.deepEqual(trace.slice(-5), ['roll-back', 'write', 'park', 'unpark', 'finish']);
    assert.equal(node.ca?.hash, 'old');
    assert.equal(node.processes[0]?.loaded, 'old');
  });

  test('that does not come back with the old CA either is left to a person', () => {
    const node = new SimulatedNode({ ...GOOD, breaksWith: 'new' });
    const start = nextAction(node.facts(), PLAN, { ready: true, gate: undefined });
    node.apply(start);
    const broken: NodeFacts = {
      ...node.facts(),
      processes: [],
      ca: { hash: 'old', ageMs: 500_000 },
      manifest: { where: 'in-place', ageMs: 500_000 },
      journal: {
        ...(node.journal as Journal),
        phase: 'back',
        failure: { step: 'start', output: 'no kube-apiserver runs' },
      },
    };
    const action = nextAction(broken, PLAN, { ready: false, gate: undefined });
    assert.equal(action.do, 'fail');
    assert.match(JSON.stringify(action), /with the old CA too; before that: start/u);
  });

  test('whose old API server does not end gets its manifest back all the same', () => {
    const node = new SimulatedNode({ ...GOOD, neverStops: true });
    const action = run(node);
    assert.equal(action.do, 'fail');
    assert.match(JSON.stringify(action), /does not end/u);
    assert.equal(node.where, 'in-place');
    assert.equal(node.ca?.hash, 'old');
  });

  test('is not begun while another API server is down, nor while its own is', () => {
    const node = new SimulatedNode(GOOD);
    const gate = 'waiting for the API server of b';
    assert.deepEqual(nextAction(node.facts(), PLAN, { ready: true, gate }), {
      do: 'wait',
      phase: 'Waiting',
      reason: gate,
    });
    assert.equal(nextAction(node.facts(), PLAN, { ready: false, gate: undefined }).do, 'wait');
    node.apply({
      do: 'begin',
      journal: {
        version: 1,
        phase: 'forward',
        target: 'new',
        previous: 'old',
        oldProcesses: ['first'],
        parks: 0,
      },
    });
    node.apply({ do: 'write', which: 'target' });
    assert.equal(
      nextAction(node.facts(), PLAN, { ready: true, gate }).do,
      'wait',
      'a restart asks the gate again',
    );
  });

  test('is finished though another API server is down, once its manifest is parked', () => {
    const node = new SimulatedNode(GOOD);
    for (const _ of [1, 2, 3, 4])
      node.apply(nextAction(node.facts(), PLAN, { ready: true, gate: undefined }));
    assert.equal(node.where, 'parked');
    node.tick(40_000);
    assert.deepEqual(nextAction(node.facts(), PLAN, { ready: false, gate: 'b is down' }), { do: 'unpark' });
  });

  test('that has the file but runs an older process is restarted, with no other change', () => {
    const node = new SimulatedNode(GOOD);
    node.ca = { hash: 'new', atMs: 900_000 };
    const trace: string[] = [];
    run(node, PLAN, trace);
    assert.deepEqual(trace, ['begin', 'arm', 'park', 'unpark', 'finish', 'nothing']);
  });

  test('whose clock was set back and forth is still restarted: processes are known by name too', () => {
    const node = new SimulatedNode(GOOD);
    for (const _ of [1, 2]) node.apply(nextAction(node.facts(), PLAN, { ready: true, gate: undefined }));
    const facts = node.facts();
    const aged = { ...facts, ca: { hash: 'new', ageMs: 10_000_000_000 } };
    assert.equal(nextAction(aged, PLAN, { ready: true, gate: undefined }).do, 'arm');
  });

  test('takes a source that changed meanwhile, and still goes back to what was there at first', () => {
    const node = new SimulatedNode(GOOD);
    for (const _ of [1, 2]) node.apply(nextAction(node.facts(), PLAN, { ready: true, gate: undefined }));
    const action = nextAction(node.facts(), { ...PLAN, target: 'newer' }, { ready: true, gate: undefined });
    assert.equal(action.do, 'begin');
    assert.equal(action.do === 'begin' && action.journal.previous, 'old');
    assert.equal(action.do === 'begin' && action.journal.target, 'newer');
  });

  test('with a manifest of somebody else in place keeps that one', () => {
    const node = new SimulatedNode(GOOD);
    const facts: NodeFacts = { ...node.facts(), manifest: { where: 'both', ageMs: 0 } };
    assert.equal(nextAction(facts, PLAN, { ready: true, gate: undefined }).do, 'discard-parked');
    const missing: NodeFacts = { ...node.facts(), manifest: { where: 'missing', ageMs: 0 } };
    assert.equal(nextAction(missing, PLAN, { ready: true, gate: undefined }).do, 'fail');
  });
});

test('what is no journal is none', () => {
  const good: Journal = {
    version: 1,
    phase: 'back',
    target: 'a',
    previous: NO_FILE,
    oldProcesses: ['x'],
    parks: 1,
  };
  assert.deepEqual(parseJournal(JSON.stringify(good)), good);
  for (const bad of [
    '',
    '{',
    'null',
    '[]',
    '{"version":2}',
    JSON.stringify({ ...good, phase: 'up' }),
    JSON.stringify({ ...good, oldProcesses: [1] }),
  ])
    assert.equal(parseJournal(bad), undefined, bad);
});
