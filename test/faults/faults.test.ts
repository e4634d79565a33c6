import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { skipWithoutGo } from '../support/go.ts';
import { skipWithoutOwnMongo } from '../support/mongo.ts';
import { skipWithout } from '../support/servers.ts';
import { tempDir } from '../support/temp.ts';
import { checkJournal, checkRecords } from './checks/audit-log.ts';
import { buildChecker, checkLinearizability } from './checks/linearizability.ts';
import { checkMerges } from './checks/merges.ts';
import type { StreamedEvent } from './checks/streams.ts';
import type { Truth } from './checks/truth.ts';
import { checkEvents, checkWrites } from './checks/writes.ts';
import { ABSENT, createHistory, type History, type Merge } from './history.ts';
import { type Outcome, runFaults } from './run.ts';
import { planFaults } from './schedule.ts';
import type { StoreKind } from './system.ts';

const FAULTS = 12;
// COLONNADE_TEST_SEED repeats a run's schedule; every failure names its command.
const seed = Number(process.env.COLONNADE_TEST_SEED ?? Date.now() % 1_000_000);
const skip = skipWithoutGo() || (await skipWithout('nats', 'redis'));
const skipMongo = skip || (await skipWithoutOwnMongo());

async function run(store: StoreKind): Promise<Outcome> {
  const lines: string[] = [];
  const report = (text: string) => void lines.push(text);
  const outcome = await runFaults({ seed, faults: FAULTS, store, limitMs: 150_000, report });
  const again = `npm run faults -- --seed ${seed} --faults ${FAULTS} --store ${store}`;
  assert.deepEqual(outcome.violations, [], `again: ${again}\n${lines.join('\n')}`);
  assert.ok(outcome.faults > 0 && outcome.operations.ok > 50 && outcome.operations.merges > 50, again);
  return outcome;
}

describe(`faults of seed ${seed}`, { skip }, () => {
  let outcome: Outcome;
  before(() => buildChecker(), { timeout: 200_000 });

  test('no promise is broken on SQLite', async () => {
    outcome = await run('sqlite');
  });

  test('no promise is broken on MongoDB', { skip: skipMongo }, async () => {
    await run('mongo');
  });

  describe('what was recorded, with something wrong put into it, is found out:', () => {
    /** The kinds of violations of an altered copy. */
    async function kindsAfter(change: (copy: Copy) => void): Promise<Set<string>> {
      const copy = copyOf(outcome);
      change(copy);
      const { history, truth, events } = copy;
      checkWrites(history, truth);
      checkMerges(history, truth);
      checkEvents(history, truth, events);
      await checkLinearizability(history, truth);
      return new Set(history.violations.map(({ kind }) => kind));
    }

    test('nothing, when nothing was changed', async () => {
      assert.deepEqual(await kindsAfter(() => {}), new Set());
    });

    test('a merge that gives what was there before', async () => {
      const kinds = await kindsAfter(({ history, truth }) => {
        const { merge, key, older } = findOlder(history, truth);
        (merge.seen as Map<string, string>).set(key, older);
      });
      assert.deepEqual(kinds, new Set(['stale or partial pillar', 'not linearizable']));
    });

    test('a merge that leaves a pillar out', async () => {
      const kinds = await kindsAfter(({ history }) => {
        const merge = history.merges.at(-1) as Merge;
        (merge.seen as Map<string, string>).set('tree tuned', ABSENT);
      });
      assert.deepEqual(kinds, new Set(['stale or partial pillar', 'not linearizable']));
    });

    test('a merge of an older clock', async () => {
      const kinds = await kindsAfter(({ history }) => {
        (history.merges.at(-1) as Merge).clock = 1;
      });
      assert.ok(kinds.has('stale pillar'));
    });

    test('an acknowledged write that is not there', async () => {
      const kinds = await kindsAfter(({ history }) => {
        const write = history.operations.findLast(
          (o) => o.kind === 'cas' && o.outcome === 'ok' && o.value !== ABSENT,
        );
        assert.ok(write);
        history.operations.push({ ...write, value: 'never-written', expect: write.value });
      });
      assert.ok(kinds.has('lost write'));
    });

    test('a lost event, one that comes twice, and two in the wrong order', async () => {
      const pillars = (events: StreamedEvent[]) =>
        events.findLastIndex(({ type }) => type === 'pillar.updated');
      const lost = await kindsAfter(({ events }) => void events.splice(pillars(events), 1));
      assert.deepEqual(lost, new Set(['lost event']));
      const twice = await kindsAfter(({ events }) => void events.push(events.at(-1) as StreamedEvent));
      assert.ok(twice.has('event twice'));
      const swapped = await kindsAfter(({ events }) => {
        const at = pillars(events);
        events.splice(at - 1, 2, events[at] as StreamedEvent, events[at - 1] as StreamedEvent);
      });
      assert.deepEqual(swapped, new Set(['events out of order']));
    });
  });
});

test('a record that is not in the audit log, one that is there twice, and a hole in the journal are found out', async () => {
  await using dir = await tempDir('faults');
  const log = path.join(dir.path, 'audit.log');
  const stageTimestamp = '2026-01-31T12:00:00.000000Z';
  const line = JSON.stringify({
    auditID: 'a',
    stage: 'RequestReceived',
    requestURI: '/pillars',
    stageTimestamp,
  });
  await writeFile(log, `${line}\n${line}\n`);
  const history = createHistory();
  for (const auditId of ['a', 'b'])
    history.recorded.push({ auditId, stages: ['RequestReceived'], what: 'a write' });
  await checkRecords(history, log);
  await writeFile(`${log}.chain`, '{}\ne 1 0 0 x\ne 3 0 0 x\n');
  await checkJournal(history, `${log}.chain`, 3);
  assert.deepEqual(
    history.violations.map(({ kind }) => kind),
    ['record twice', 'lost record', 'audit log'],
  );
});

test('a seed always gives the same faults, each kind for each target before one comes again', () => {
  const targets = { parts: ['a', 'b'], links: ['a-b'], lockable: ['file'] };
  const steps = planFaults(7, 50, targets);
  assert.deepEqual(planFaults(7, 50, targets), steps);
  assert.notDeepEqual(planFaults(8, 50, targets), steps);
  const faults = steps.flatMap((step) => step.faults);
  assert.equal(faults.length, 50);
  const first = faults.slice(0, 9).map(({ kind, target }) => `${kind} ${target}`);
  assert.equal(new Set(first).size, 9);
  for (const step of steps) {
    assert.equal(new Set(step.faults.map(({ target }) => target)).size, step.faults.length);
  }
});

type Copy = { history: History; truth: Truth; events: StreamedEvent[] };

function copyOf({ evidence: { history, truth, events } }: Outcome): Copy {
  const merges = history.merges.map((merge) => ({ ...merge, seen: new Map(merge.seen) }));
  const operations = [...history.operations];
  return { history: { ...history, merges, operations, violations: [] }, truth, events: [...events] };
}

/** A merge of a register that had another value before, long enough for nobody to have been writing it meanwhile. */
function findOlder(history: History, truth: Truth): { merge: Merge; key: string; older: string } {
  const key = 'tree tuned';
  const versions = truth.get(key) ?? [];
  // The last value of all may have come after the last merge.
  for (let at = versions.length - 1; at >= 2; at -= 1) {
    const merge = history.merges.findLast(({ seen }) => seen.get(key) === versions[at]?.id);
    const older = versions[at - 2]?.id;
    if (merge !== undefined && older !== undefined) return { merge, key, older };
  }
  assert.fail('the run changed too little');
}
