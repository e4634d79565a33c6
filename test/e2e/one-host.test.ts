import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { keepRunning, loadSample } from '@colonnade/embedded';
import { toPlain } from '@colonnade/value';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

describe('the installation of one host', () => {
  let stack: TestStack;
  before(async () => {
    stack = await stackForTests();
  });
  after(async () => stack[Symbol.asyncDispose]());

  test('loads its sample once, and again after a start that lost what is shown only once', async () => {
    const folder = path.join(stack.stack.dir, 'secrets', 'masters');
    const load = () => loadSample(stack.api, stack.stack.redis, folder);
    const first = (await load()).get('salt-east');
    assert.deepEqual((await load()).get('salt-east'), first);
    for (const file of ['salt-east.json', 'loaded']) await rm(path.join(folder, file));
    const renewed = (await load()).get('salt-east');
    assert.ok(renewed !== undefined && renewed.token !== first?.token);
    const reply = await stack.bridge(renewed).ask({ minionId: 'shop-1.example', pillarenv: 'auto' });
    assert.ok(reply.ok);
  });

  test('leaves an estate alone that its owner has changed', async () => {
    const folder = path.join(stack.stack.dir, 'secrets', 'masters');
    const list = () => stack.api.call('POST', '/pillars/list', {});
    const { items } = toPlain((await list()).value ?? null) as { items: { pid: string; name: string }[] };
    const motd = items.find(({ name }) => name === 'motd');
    await writeEstate(stack.api).remove(motd?.pid ?? '');
    await loadSample(stack.api, stack.stack.redis, folder);
    const after = toPlain((await list()).value ?? null) as { items: { pid: string }[] };
    assert.equal(after.items.length, items.length - 1);
  });

  test('starts a part again that ends by itself, and leaves one alone that was asked to end', async () => {
    const said: string[] = [];
    const stopped = new AbortController();
    const { kms } = stack.stack;
    const watching = keepRunning('crypto-kms', kms, (text) => said.push(text), stopped.signal);
    process.kill(kms.pid, 'SIGKILL');
    await waitFor('it to run again', () => said.some((text) => text.endsWith('runs again')), {
      limitMs: 30_000,
    });
    assert.match(said[0] ?? '', /SIGKILL.*crypto-kms\.log/u);
    assert.equal((await fetch(`${kms.url}/healthz`)).status, 200);
    const before = said.length;
    await kms.restart();
    assert.equal(said.length, before);
    stopped.abort();
    await kms.kill('SIGKILL');
    await kms.restart();
    void watching;
  });
});
