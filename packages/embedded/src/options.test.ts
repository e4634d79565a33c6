import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readOptions, usage } from './options.ts';

describe('the options of npm start', () => {
  test('have safe defaults', () => {
    const { once, data, mergers, httpPort, json } = readOptions([]);
    assert.deepEqual(
      { once, data, mergers, httpPort, json },
      { once: false, data: undefined, mergers: 1, httpPort: 0, json: false },
    );
  });

  for (const [args, named] of [
    [['--nonsense'], /--nonsense/u],
    [['stray'], /stray/u],
    [['--mergers', '0'], /--mergers/u],
    [['--mergers', '17'], /--mergers/u],
    [['--port', '65536'], /--port/u],
    [['--port', '8o'], /--port/u],
    [['--data'], /--data/u],
    [['--data='], /--data/u],
    [['--audit-policy', 'no such file'], /--audit-policy no such file/u],
    [['--audit-webhook', 'no such file'], /--audit-webhook no such file/u],
  ] as const) {
    test(`${args.join(' ')} is refused by name`, () => {
      assert.throws(
        () => readOptions(args),
        (error: Error & { code: string }) => error.code === 'bad_request' && named.test(error.message),
      );
    });
  }

  test('are all in the usage', () => {
    const options = ['--once', '--data', '--mergers', '--port', '--json', '--help'];
    for (const name of [...options, '--audit-policy', '--audit-webhook'])
      assert.ok(usage.includes(name), name);
    assert.match(usage, /Policy.*read again\s+when it changes/u);
    assert.match(usage, /webhook that.*read again after a\s+delivery failed/u);
  });
});
