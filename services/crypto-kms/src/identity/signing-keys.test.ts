import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { IDENTITY_KEY, WORKLOAD_LIFETIME_S } from '@colonnade/contracts';
import { tempDir } from '../../../../test/support/temp.ts';
import { openKeyring } from '../keyring/keyring.ts';
import { toRootKey } from '../keyring/root-key.ts';
import { createSigningKeys } from './signing-keys.ts';
import { createWorkloadTokens } from './workload-token.ts';

const root = toRootKey(createSecretKey(randomBytes(32)));
const TASK = { kind: 'task', task: 't1', template: 'deploy', owner: 'ann' } as const;

async function prepare() {
  const dir = await tempDir('signing');
  const clock = { ms: 1_800_000_000_000 };
  const options = {
    stateDir: dir.path,
    name: IDENTITY_KEY,
    root,
    prepublishMs: 60_000,
    nowMs: () => clock.ms,
  };
  const open = async () => {
    const keyring = await openKeyring(options);
    const keys = createSigningKeys(keyring, () => clock.ms);
    const tokens = createWorkloadTokens({
      ...{ keys, issuer: 'https://colonnade.example', nowS: () => Math.floor(clock.ms / 1000) },
      revocations: { isRevoked: (sid) => sid.startsWith('revoked') },
    });
    return { keyring, keys, tokens };
  };
  return { clock, open, [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose]() };
}

test('a next key is published before it signs, and the one before until its last token has expired', async () => {
  await using world = await prepare();
  const one = await world.open();
  const replica = await world.open();
  const kids = async () => (await one.keys.jwks()).map(({ kid }) => kid);
  const signer = async () => (await one.keys.signer('EdDSA')).kid;
  const [first] = await kids();
  assert.equal((await kids()).length, 2);
  await one.keyring.rotate();
  await replica.keyring.refresh();
  const [, , next] = await kids();
  assert.equal((await kids()).length, 4);
  assert.equal(await signer(), first);
  world.clock.ms += 59_999;
  assert.equal(await signer(), first);
  // A clock that is a second behind would sign once more now: so late a token must verify everywhere, to its end.
  const last = await one.tokens.issue(TASK);
  world.clock.ms += 1;
  assert.equal(await signer(), next);
  assert.equal((await replica.tokens.verify((await one.tokens.issue(TASK)).token)).sub, 'task:t1');
  world.clock.ms += (WORKLOAD_LIFETIME_S - 1) * 1000;
  assert.equal((await replica.tokens.verify(last.token)).sub, 'task:t1');
  world.clock.ms += 3600_000;
  assert.deepEqual((await kids()).length, 2);
  assert.ok(!(await kids()).includes(first ?? ''));
  await assert.rejects(replica.tokens.verify(last.token), { code: 'unauthorized' });
});

test('keys come back from the disk, and are none without a root key', async () => {
  await using world = await prepare();
  const { token } = await (await world.open()).tokens.issue(TASK, { algorithm: 'ES256' });
  assert.deepEqual((await (await world.open()).tokens.verify(token)).workload, TASK);
  const none = createSigningKeys(undefined);
  assert.deepEqual(await none.jwks(), []);
  await assert.rejects(none.signer('EdDSA'), { code: 'key_not_configured' });
});

test('a token lives for a quarter of an hour at most', async () => {
  await using world = await prepare();
  const { tokens } = await world.open();
  const issued = await tokens.issue(TASK);
  assert.equal(issued.expires_at_ms, world.clock.ms + WORKLOAD_LIFETIME_S * 1000);
  world.clock.ms = issued.expires_at_ms + 6000;
  await assert.rejects(tokens.verify(issued.token), { code: 'unauthorized', message: /expired/u });
});

test('a token of an enrolment that was taken back, or for another audience, is refused', async () => {
  await using world = await prepare();
  const { tokens } = await world.open();
  const master = { kind: 'master', master: 'm1' } as const;
  const good = await tokens.issue(master, { sid: 'enrolment-0000001' });
  assert.equal((await tokens.verify(good.token)).sid, 'enrolment-0000001');
  for (const options of [{ sid: 'revoked-000000001' }, { audience: 'kubernetes' }]) {
    const { token } = await tokens.issue(master, options);
    await assert.rejects(tokens.verify(token), { code: 'unauthorized' });
  }
});
