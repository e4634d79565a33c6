import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { ensureVenv } from '../../../test/support/python.ts';
import { findForTests } from '../../../test/support/servers.ts';

type Line = { name: string; outcome: 'passed' | 'failed' | 'skipped'; detail: string };

/** The newest client library, and the oldest one that the package allows. */
const runs = [
  {
    redis: '8.1.0',
    modules: [
      ...['test_answers', 'test_breaker', 'test_engine', 'test_failures', 'test_identity', 'test_options'],
      'test_transport',
    ],
  },
  { redis: '4.5.5', modules: ['test_engine', 'test_failures', 'test_transport'] },
];

for (const { redis, modules } of runs) {
  describe(`the ext_pillar module with redis ${redis}`, () => {
    let lines: Line[];
    before(async () => {
      const python = await ensureVenv('redis', [`redis==${redis}`]);
      lines = await runPython(python, modules);
    });
    for (const module of modules) {
      test(module, async (t) => {
        const mine = lines.filter(({ name }) => name.startsWith(`${module}.`));
        assert.ok(mine.length > 0, 'no test of it ran');
        for (const { name, outcome, detail } of mine) {
          await t.test(name.slice(module.length + 1), { skip: outcome === 'skipped' && detail }, () => {
            assert.equal(outcome, 'passed', detail);
          });
        }
      });
    }
    after(() => {
      const strangers = lines.filter(({ name }) => !modules.some((module) => name.startsWith(`${module}.`)));
      assert.deepEqual(strangers, []);
    });
  });
}

async function runPython(python: string, modules: readonly string[]): Promise<Line[]> {
  const { path: server } = await findForTests('redis');
  const child = spawn(python, [path.join(import.meta.dirname, 'run_tests.py'), ...modules], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, COLONNADE_REDIS_SERVER: server, PYTHONDONTWRITEBYTECODE: '1' },
  });
  const lines: Line[] = [];
  for await (const line of createInterface(child.stdout)) lines.push(JSON.parse(line) as Line);
  return lines;
}
