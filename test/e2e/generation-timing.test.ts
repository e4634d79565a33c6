import assert from 'node:assert/strict';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { STEPS } from '../../services/hook-runner/src/generation/stopwatch.ts';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

const HOOKED = [
  'policy-generation-pre-start',
  'policy-generation-started',
  'policy-generation-node-ready',
  'policy-generation-node-finished',
  'policy-generation-finished',
];
const ALL = Object.values(STEPS);

describe('the steps of a generation', () => {
  let world: TestStack;
  before(async () => {
    world = await stackForTests({ env: { GENERATION_DEBOUNCE_MS: '50' } });
    await world.addMaster('east');
    for (const event of HOOKED) {
      const file = path.join(world.stack.hooksDir, event, '10-slow');
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, '#!/bin/sh\nsleep 0.05\n');
      await chmod(file, 0o755);
    }
  });
  after(() => world[Symbol.asyncDispose]());

  /** Count and sum, by step. */
  const scrape = async () => {
    const text = await (await fetch(`${world.stack.hooks.url}/metrics`)).text();
    const found = new Map<string, { count: number; seconds: number }>();
    for (const step of ALL) {
      const of = (what: string) => {
        const line = new RegExp(
          `^colonnade_generation_step_seconds_${what}\\{[^}]*step="${step}"[^}]*\\} (\\S+)$`,
          'mu',
        ).exec(text);
        return Number(line?.[1] ?? 0);
      };
      found.set(step, { count: of('count'), seconds: of('sum') });
    }
    return found;
  };

  test('each has its metric, which moves with each generation, and its line in the log', async () => {
    const estate = writeEstate(world.api);
    await estate.minion('east', 'web-1', []);
    const first = await waitFor('a first generation', async () => {
      const steps = await scrape();
      return (steps.get(STEPS.readyHooks)?.seconds ?? 0) > 0 ? steps : undefined;
    });
    await estate.pillar({ tgt_type: 'root' }, 'motd', 'hello');
    const second = await waitFor('the one of the pillar', async () => {
      const steps = await scrape();
      const isMoved = ALL.every((step) => (steps.get(step)?.count ?? 0) > (first.get(step)?.count ?? 0));
      return isMoved ? steps : undefined;
    });
    for (const step of ALL) {
      const { seconds = 0 } = second.get(step) ?? {};
      assert.ok(seconds > (first.get(step)?.seconds ?? 0), `${step} took no time`);
    }
    for (const step of [STEPS.startHooks, STEPS.readyHooks, STEPS.finishedHooks, STEPS.endHooks]) {
      assert.ok((second.get(step)?.seconds ?? 0) >= 0.05, `${step} has the time of its hooks`);
    }
    const log = await readFile(path.join(world.stack.dir, 'logs', 'hook-runner.log'), 'utf8');
    const lines = log.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
    const told = lines.filter(
      ({ namespace, msg }) => namespace === 'policy.generation.timing' && msg === 'Timing summary',
    );
    const { generation } = told.at(-1);
    assert.deepEqual(
      told.filter((line) => line.generation === generation).map(({ step }) => step),
      ALL,
    );
  });
});
