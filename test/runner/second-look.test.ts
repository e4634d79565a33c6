import assert from 'node:assert/strict';
import { test } from 'node:test';
import { takeSecondLook } from './second-look.ts';
import { type FileResult, failedCount, passedCount } from './tally.ts';

const result = (file: string, passed: number, ...failed: string[]): FileResult => ({
  ...{ file, passed, skips: [], output: '', durationMs: 1 },
  failures: failed.map((name) => ({ name, error: new Error(name) })),
});

test('what fails again is counted, what does not is told and counted as it ended', async () => {
  const tally = { results: [result('a', 3), result('b', 1, 'shaky'), result('c', 0, 'broken')] };
  const asked: string[] = [];
  const replaced = await takeSecondLook(tally, async (file) => {
    asked.push(file);
    return file === 'b' ? result('b', 2) : result('c', 0, 'broken');
  });
  assert.deepEqual(asked, ['b', 'c']);
  assert.deepEqual(
    replaced.map(({ file, failures }) => [file, failures[0]?.name]),
    [['b', 'shaky']],
  );
  assert.deepEqual([passedCount(tally), failedCount(tally, true)], [5, 1]);
});

test('many failures are no accident: nothing is run again', async () => {
  const tally = { results: Array.from({ length: 11 }, (_, i) => result(`f${i}`, 0, 'broken')) };
  assert.deepEqual(await takeSecondLook(tally, () => assert.fail()), []);
  assert.equal(failedCount(tally, true), 11);
});
