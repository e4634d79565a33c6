import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { IDENTITY_KEY, WORKLOAD_LIFETIME_S } from '@colonnade/contracts';
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose';
import { tempDir } from '../../../../test/support/temp.ts';
import { waitFor } from '../../../../test/support/wait-for.ts';
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
  return { clock, open, options, [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose]() };
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

test('a line of tokens that began with a barred key ends with it, whatever key signs its latest', async () => {
  await using world = await prepare();
  const { keyring, keys, tokens } = await world.open();
  const first = await tokens.issue(TASK);
  const old = await keys.signer('EdDSA');
  await keyring.rotate();
  world.clock.ms += 60_000;
  const renew = async (token: string) => {
    const { workload, gen } = await tokens.verify(token);
    return (await tokens.issue(workload, { gen })).token;
  };
  const forge = async (claims: object) => {
    const iat = Math.floor(world.clock.ms / 1000);
    return new SignJWT({ ...decodeJwt(first.token), iat, nbf: iat, exp: iat + 600, ...claims })
      .setProtectedHeader({ ...decodeProtectedHeader(first.token), alg: 'EdDSA' })
      .sign(old.privateKey);
  };
  // Whoever has the key writes what he likes; one from before there was a line says nothing.
  const lines = [first.token, await forge({}), await forge({ gen: 99 }), await forge({ gen: undefined })];
  const renewed = await Promise.all(lines.map(renew));
  const again = await Promise.all(renewed.map(renew));
  const fresh = await tokens.issue(TASK);
  for (const token of [...renewed, ...again]) assert.equal((await tokens.verify(token)).gen, 1);
  assert.equal((await tokens.verify(await renew(fresh.token))).gen, 2);
  await keyring.setMinVersion(2);
  for (const token of [...lines, ...renewed, ...again])
    await assert.rejects(renew(token), { code: 'unauthorized', message: /barred|unknown key/u });
  assert.equal((await tokens.verify(await renew(fresh.token))).gen, 2);
});

test('what one replica has barred another refuses and publishes no more within seconds, though nobody has it read', async () => {
  await using world = await prepare();
  const one = await world.open();
  const replica = await world.open();
  const { token } = await one.tokens.issue(TASK);
  await one.keyring.rotate();
  world.clock.ms += 60_000;
  const published = async () => (await replica.keys.jwks()).length;
  await waitFor('both versions', async () => (await published()) === 4);
  assert.equal((await replica.tokens.verify(token)).gen, 1);
  await one.keyring.setMinVersion(2);
  const refused = () =>
    replica.tokens.verify(token).then(
      () => false,
      () => true,
    );
  await waitFor('the refusal', refused, { limitMs: 5000 });
  assert.equal(await published(), 2);
});

test('a version that a wrong clock put far ahead keeps no other published', async () => {
  await using world = await prepare();
  const { keyring, keys, tokens } = await world.open();
  const ahead = await openKeyring({ ...world.options, nowMs: () => world.clock.ms + 365 * 86_400_000 });
  await ahead.rotate();
  const { token } = await tokens.issue(TASK);
  await keyring.rotate();
  assert.equal((await keys.jwks()).length, 6);
  world.clock.ms += 60_000;
  assert.equal((await tokens.verify(token)).gen, 1);
  world.clock.ms += (WORKLOAD_LIFETIME_S + 3600) * 1000;
  assert.deepEqual(
    (await keys.jwks()).map(({ kid }) => kid).includes((await keys.signer('EdDSA')).kid),
    true,
  );
  assert.equal((await keys.jwks()).length, 2);
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
