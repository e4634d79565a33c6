import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { kmsSeal } from '@colonnade/contracts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { call, KEK_B64, type PreparedKms, prepareKms } from './support.ts';

const MAIN = path.join(import.meta.dirname, '..', 'src', 'main.ts');

let kms: PreparedKms;
before(async () => {
  kms = await prepareKms();
});
after(() => kms[Symbol.asyncDispose]());

/** The service as its own process, with nothing of this one's environment. */
function startProcess(changes: Record<string, string> = {}) {
  const child: ChildProcess = spawn(process.execPath, [MAIN], {
    env: { ...kms.env, ...changes },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const seen = { output: '' };
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (seen.output += chunk));
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  return { child, seen, exited };
}

const readyUrl = (output: string) => /"url":"(http:[^"]+)".*"msg":"ready"/u.exec(output)?.[1];

test('says when it is ready, works, and leaves in order when asked', async () => {
  const { child, seen, exited } = startProcess();
  const url = await waitFor('the ready line', () => readyUrl(seen.output));
  assert.equal((await fetch(`${url}/readyz`)).status, 200);
  const api = await kms.bus.as('pillar-api');
  const context = { tgt_type: 'root' as const, tgt_id: 'root', pillarenv: 'base', name: 'x' };
  const { items } = await api.request(kmsSeal, { items: [{ context, value: 'v' }] }, call());
  assert.ok(items[0]?.ok);
  child.kill('SIGTERM');
  assert.equal(await exited, 0);
  assert.match(seen.output, /"msg":"stopped"/u);
  assert.equal((await kms.records()).filter((record) => record.verb === 'seal').length, 1);
  for (const secret of [KEK_B64, kms.env.NATS_NKEY_SEED, kms.admin.token])
    assert.ok(!seen.output.includes(secret));
});

test('a wrong setting ends it with 78 and the reason, without the setting', async () => {
  const wrong = Buffer.alloc(31, 7).toString('base64');
  const { seen, exited } = startProcess({ PILLARS_KEK_B64: wrong });
  assert.equal(await exited, 78);
  assert.match(seen.output, /PILLARS_KEK_B64 holds 31 bytes/u);
  assert.ok(!seen.output.includes(wrong));
});

test('killed at any moment of its first start, it starts again with one whole key', async () => {
  const stateDir = path.join(kms.dir, 'killed-state');
  for (const ms of [150, 250, 350]) {
    const { child, seen, exited } = startProcess({ KMS_STATE_DIR: stateDir });
    const timer = setTimeout(() => child.kill('SIGKILL'), ms);
    await Promise.race([exited, waitFor('the ready line', () => readyUrl(seen.output))]);
    clearTimeout(timer);
    child.kill('SIGKILL');
    await exited;
  }
  const { child, seen, exited } = startProcess({ KMS_STATE_DIR: stateDir });
  await waitFor('the ready line', () => readyUrl(seen.output));
  child.kill('SIGTERM');
  assert.equal(await exited, 0);
});
