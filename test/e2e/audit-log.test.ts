import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { fromPlain } from '@colonnade/value';
import { stackForTests, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

type Line = {
  auditID: string;
  stage: string;
  verb: string;
  objectRef?: { resource?: string };
  user: { username: string };
};

describe('the audit log of a whole Colonnade', () => {
  let stack: TestStack;
  before(async () => {
    stack = await stackForTests();
  });
  after(() => stack[Symbol.asyncDispose]());

  const lines = async () =>
    (await readFile(stack.stack.auditLog, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);

  test('has a write with both its stages, also one made while the sink was dead', async () => {
    const { api } = stack;
    await api.call('POST', '/collections', fromPlain({ id: 'web', name: 'web' }));
    await stack.stack.sink.kill('SIGKILL');
    await api.call('POST', '/collections', fromPlain({ id: 'db', name: 'db' }));
    await stack.stack.sink.restart();
    const writes = await waitFor('both writes', async () => {
      const found = (await lines()).filter(
        (l) => l.verb === 'create' && l.objectRef?.resource === 'collections',
      );
      return found.length >= 4 ? found : undefined;
    });
    const byId = Map.groupBy(writes, ({ auditID }) => auditID);
    assert.equal(byId.size, 2);
    for (const stages of byId.values())
      assert.deepEqual(stages.map((s) => s.stage).sort(), ['RequestReceived', 'ResponseComplete']);
    assert.ok(writes.every(({ user }) => user.username === 'bootstrap-admin'));
  });
});
