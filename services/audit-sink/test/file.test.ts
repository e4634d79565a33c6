import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type PreparedSink, prepareSink, publishMany, readIds } from './support.ts';

describe('the file', () => {
  let sink: PreparedSink;
  before(async () => {
    sink = await prepareSink();
  });
  after(() => sink[Symbol.asyncDispose]());

  test('holds every acknowledged record once, in the order of the stream, across restarts', async () => {
    const wanted = await publishMany(sink.publisher, 'before', 100);
    for (const name of ['first', 'second', 'third']) {
      await using _running = await sink.start();
      wanted.push(...(await publishMany(sink.publisher, name, 500)));
      await waitFor('all', async () => (await readIds(sink.logPath)).length >= wanted.length);
    }
    const ids = await readIds(sink.logPath);
    assert.deepEqual([...ids].sort(), [...wanted].sort());
  });
});
