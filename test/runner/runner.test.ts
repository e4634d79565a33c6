import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { tempDir } from '../support/temp.ts';

/** Node.js refuses to run tests in a process that it believes to be a test itself. */
const { NODE_TEST_CONTEXT, COLONNADE_REQUIRE_ALL, ...env } = process.env;

type Result = { passed: number; failures: [string, unknown][]; skips: unknown[]; output: string };

/** What the runner makes of a file with this text. */
async function resultOf(text: string): Promise<Result> {
  await using dir = await tempDir('runner');
  await writeFile(
    path.join(dir.path, 'some.test.mjs'),
    `import { after, describe, test } from 'node:test';\n${text}`,
  );
  const fixture = path.join(import.meta.dirname, 'fixtures', 'run-files.ts');
  const { stdout, stderr } = spawnSync(process.execPath, [fixture, dir.path, 'some.test.mjs'], {
    env,
    encoding: 'utf8',
  });
  assert.ok(stdout, stderr);
  return JSON.parse(stdout)[0];
}

describe('runFile counts', { concurrency: 2 }, () => {
  it('tests, not what groups them, and names a failure by its path', async () => {
    const result = await resultOf(`
      test('one', () => console.log('said'));
      describe('group', () => { test('two', () => {}); test('three', () => { throw new Error('broken'); }); });
    `);
    assert.equal(result.passed, 2);
    assert.deepEqual(result.failures, [['group > three', 'broken']]);
    assert.match(result.output, /^said$/m);
  });

  it('skips and tests still to be done apart', async () => {
    const result = await resultOf(
      `test('a', { skip: 'no server' }, () => {}); test('b', { todo: 'soon' }, () => {});`,
    );
    assert.equal(result.passed, 0);
    assert.deepEqual(result.failures, []);
    assert.deepEqual(result.skips, [
      { name: 'a', reason: 'no server' },
      { name: 'b', reason: 'to do soon' },
    ]);
  });

  const wrong = {
    'a file that throws while it loads': [`throw new Error('at load');`, 0],
    'a file without a test': ['', 0],
    'a file that ends itself before its tests have run': [
      `test('a', () => {}); test('b', () => process.exit(0));`,
      0,
    ],
    'a file that is killed': [`test('a', () => process.kill(process.pid, 'SIGKILL'));`, 0],
    'a hook that throws': [`test('a', () => {}); after(() => { throw new Error('late'); });`, 1],
    'an error after the test has ended': [
      `test('a', () => void setTimeout(() => { throw new Error('late'); }, 5)); test('b', () => new Promise((r) => setTimeout(r, 50)));`,
      2,
    ],
  } as const;
  for (const [what, [text, passed]] of Object.entries(wrong)) {
    it(`${what} as failed`, async () => {
      const result = await resultOf(text);
      assert.equal(result.failures.length, 1, JSON.stringify(result));
      assert.equal(result.passed, passed);
    });
  }
});

describe('npm test', () => {
  it('closes with a count also when it cannot begin', () => {
    const run = path.join(import.meta.dirname, '..', 'run.ts');
    const { status, stdout } = spawnSync(process.execPath, [run, 'no-such-test'], { env, encoding: 'utf8' });
    assert.equal(status, 1);
    assert.match(stdout, /^0 passed, 1 failed\n$/m);
  });
});
