import assert from 'node:assert/strict';
import { createHmac, createSecretKey, randomBytes, randomUUID, sign as signBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import {
  BRIDGE_AUDIENCE,
  type ColonnadeError,
  deriveGrantKey,
  GRANT_ACTS,
  GRANT_AUDIENCE,
  IDENTITY_ISSUER,
  MASTER_TOKEN_TYP,
  type Workload,
} from '@colonnade/contracts';
import fc from 'fast-check';
import { anyJson, assertMutantsRefused, fuzzRuns } from '../../../test/support/fuzz.ts';
import { type TempDir, tempDir } from '../../../test/support/temp.ts';
import { createGrants, type Grants } from '../src/grants.ts';
import { openEnrolments } from '../src/identity/enrolments.ts';
import { createSigningKeys } from '../src/identity/signing-keys.ts';
import { createWorkloadTokens } from '../src/identity/workload-token.ts';
import { type IdentityKeys, loadIdentityKeys } from '../src/identity-keys.ts';
import { openKeyring } from '../src/keyring/keyring.ts';
import { toRootKey } from '../src/keyring/root-key.ts';
import { createMasterTokens } from '../src/master-token.ts';
import { openReaders } from '../src/readers.ts';
import { openRevocations, type Revocations } from '../src/revocations.ts';
import { openUsedGrants } from '../src/used-grants.ts';
import { makeApiToken } from './support.ts';

const nowS = () => 1_800_000_000;
let dir: TempDir;
let identity: IdentityKeys;
let revocations: Revocations;
before(async () => {
  dir = await tempDir('fuzz');
  identity = await loadIdentityKeys(dir.path);
  revocations = await openRevocations(dir.path, nowS);
});
after(() => dir[Symbol.asyncDispose]());

const base64 = (text: string) => Buffer.from(text).toString('base64url');
const signByHand = (header: object, payload: string, sign: (data: Buffer) => Uint8Array) => {
  const head = `${base64(JSON.stringify(header))}.${base64(payload)}`;
  return `${head}.${Buffer.from(sign(Buffer.from(head))).toString('base64url')}`;
};

/** Claims of which one was changed, or stands there twice, as JSON text, and what they say. */
function changedClaims(claims: Readonly<Record<string, unknown>>) {
  const name = fc.constantFrom(...Object.keys(claims), 'extra', '__proto__', 'constructor');
  const near = fc.constantFrom<unknown>(
    ...Object.values(claims).flatMap((value) => [
      value,
      [value],
      String(value),
      `${String(value)} `,
      { value },
    ]),
  );
  return fc.tuple(name, fc.oneof(anyJson(), near), fc.boolean()).map(([field, value, isTwice]) => {
    const member = `${JSON.stringify(field)}:${JSON.stringify(value)}`;
    const { [field]: _, ...rest } = claims;
    const text = `${JSON.stringify(isTwice ? claims : rest).slice(0, -1)},${member}}`;
    return { text, says: JSON.parse(text) as Record<string, unknown> };
  });
}

describe('tokens of masters', () => {
  test('mutants are refused', async () => {
    const tokens = createMasterTokens(identity, revocations, nowS);
    const genuine = await Promise.all(['m1', 'm1', 'm2'].map(async (m) => (await tokens.issue(m, 60)).token));
    for (const token of genuine.slice(0, 2)) await tokens.verify(token, 'm1');
    await assertMutantsRefused(genuine, (token) => tokens.verify(token, 'm1'));
    await assert.rejects(tokens.verify(genuine[2] as string, 'm1'), { code: 'unauthorized' });
  });

  test('whatever a signed one says, it is good only for whom it names, or refused', async () => {
    const times = { iat: nowS(), nbf: nowS(), exp: nowS() + 60 };
    const claims = {
      iss: IDENTITY_ISSUER,
      sub: 'master:m1',
      aud: BRIDGE_AUDIENCE,
      jti: randomUUID(),
      ...times,
    };
    const header = { alg: 'EdDSA', typ: MASTER_TOKEN_TYP, kid: identity.active.kid };
    const sign = (data: Buffer) => signBytes(null, data, identity.active.privateKey);
    await fc.assert(
      fc.asyncProperty(changedClaims(claims), async ({ text, says }) => {
        const tokens = createMasterTokens(identity, revocations, nowS);
        const token = signByHand(header, text, sign);
        const outcome = await tokens.verify(token, 'm1').catch((thrown: ColonnadeError) => thrown);
        if (outcome instanceof Error)
          return assert.equal(outcome.code, 'unauthorized', `${text}: ${outcome.message}`);
        assert.deepEqual(
          [says.iss, says.sub, [says.aud].flat().includes(BRIDGE_AUDIENCE)],
          [claims.iss, claims.sub, true],
        );
        assert.equal(outcome.jti, says.jti);
      }),
      fuzzRuns(1500),
    );
  });
});

describe('grants of every act', () => {
  const RES = 'root:root:base:db';
  const api = makeApiToken();
  const key = deriveGrantKey(api.token);
  let grants: Grants;
  before(async () => {
    const readers = await openReaders(dir.path);
    await readers.put({
      ...{
        token_id: api.id,
        sub: 'alice',
        rights: ['reveal', 'admin', 'task'],
        grant_key_hex: key.toString('hex'),
      },
      ...{ expires_at_ms: null, origin: 'api' },
    });
    grants = createGrants(readers, openUsedGrants(dir.path), nowS);
  });
  const claimsOf = (act: string) => {
    const purpose = { aud: GRANT_AUDIENCE, sub: 'alice', act, res: RES, jti: randomUUID() };
    return { ...purpose, iat: nowS(), exp: nowS() + 30 };
  };
  const sign = (payload: string) =>
    signByHand({ alg: 'HS256', kid: api.id }, payload, (data) =>
      createHmac('sha256', key).update(data).digest(),
    );
  const use = async (grant: string, act: (typeof GRANT_ACTS)[number]) => {
    const { refusal } = await grants.use(grant, act, RES, []);
    if (refusal !== undefined) throw refusal;
  };

  for (const act of GRANT_ACTS)
    test(`mutants of one for ${act} are refused, and use it up as little as other acts do`, async () => {
      const own = sign(JSON.stringify(claimsOf(act)));
      const others = GRANT_ACTS.filter((one) => one !== act);
      const genuine = [own, ...others.slice(0, 2).map((one) => sign(JSON.stringify(claimsOf(one))))];
      await assertMutantsRefused(genuine, (grant) => use(grant, act), 400);
      for (const other of others) await assert.rejects(use(own, other), { code: 'unauthorized' });
      await use(own, act);
      await assert.rejects(use(own, act), { code: 'unauthorized' });
    });

  test('whatever a signed one says, it is good only for what it names, or refused', async () => {
    const { act, sub, aud } = claimsOf('reveal');
    await fc.assert(
      fc.asyncProperty(changedClaims(claimsOf('reveal')), fc.uuid(), async ({ text, says }, jti) => {
        // Each with an id of its own, unless it is the id that was changed.
        const isUuid = typeof says.jti === 'string' && says.jti.length === jti.length;
        const payload = isUuid ? text.replaceAll(String(says.jti), jti) : text;
        const { refusal } = await grants.use(sign(payload), 'reveal', RES, []);
        if (refusal !== undefined)
          return assert.equal(refusal.code, 'unauthorized', `${text}: ${refusal.message}`);
        assert.deepEqual([says.act, says.sub, says.aud, says.res], [act, sub, aud, RES]);
      }),
      fuzzRuns(1500),
    );
  });
});

describe('identities of workloads', () => {
  test('mutants are refused, of each kind and in both algorithms', async () => {
    const root = toRootKey(createSecretKey(randomBytes(32)));
    const keyring = await openKeyring({ stateDir: dir.path, name: 'identity', root, prepublishMs: 0 });
    const issuer = 'https://colonnade.example';
    const now = () => Math.floor(Date.now() / 1000);
    const tokens = createWorkloadTokens({ keys: createSigningKeys(keyring), issuer, revocations, nowS: now });
    const workloads: Workload[] = [
      { kind: 'task', task: 't1', template: 'deploy', owner: 'ann' },
      { kind: 'minion', master: 'm1', minion: 'web-1' },
      { kind: 'master', master: 'm1' },
      { kind: 'service', service: 'shop' },
    ];
    const genuine: string[] = [];
    for (const workload of workloads)
      for (const algorithm of ['EdDSA', 'ES256'] as const)
        genuine.push((await tokens.issue(workload, { algorithm, sid: randomUUID() })).token);
    for (const token of genuine) await tokens.verify(token);
    const foreign = (await tokens.issue(workloads[2] as Workload, { audience: 'kubernetes' })).token;
    await assertMutantsRefused([...genuine, foreign], async (token) => {
      const { sub } = await tokens.verify(token);
      assert.fail(`it was taken for ${sub}`);
    });
    await assert.rejects(tokens.verify(foreign), { code: 'unauthorized' });
  });
});

describe('one-time tokens', () => {
  test('mutants are refused and use nothing up; the genuine one is good once', async () => {
    const enrolments = await openEnrolments(dir.path, Date.now);
    const workloads: Workload[] = [
      { kind: 'master', master: 'm1' },
      { kind: 'service', service: 'shop' },
    ];
    const genuine: string[] = [];
    for (const workload of workloads)
      genuine.push((await enrolments.make(workload, randomUUID(), 600)).token);
    await assertMutantsRefused(genuine, (token) => enrolments.use(token));
    for (const [i, token] of genuine.entries()) {
      assert.deepEqual((await enrolments.use(token)).workload, workloads[i]);
      await assert.rejects(enrolments.use(token), { code: 'unauthorized' });
    }
  });
});
