import assert from 'node:assert/strict';
import { createPrivateKey, randomBytes, randomUUID } from 'node:crypto';
import { cp, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  BRIDGE_AUDIENCE,
  encodeTree,
  GRANT_AUDIENCE,
  grantResource,
  IDENTITY_ISSUER,
  kmsIssueTask,
  kmsOpenForApi,
  kmsOpenForMerger,
  kmsSeal,
  MASTER_TOKEN_TYP,
  rootTarget,
  zEnc,
} from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import { type JWK, SignJWT } from 'jose';
import { call, KEK_B64, type PreparedKms, prepareKms, rejects } from './support.ts';

const ROOT_KEY = randomBytes(32);
const { tgtType: tgt_type, tgtId: tgt_id, pillarenv } = rootTarget;
const context = { tgt_type, tgt_id, pillarenv, name: 'x' };
const PLAIN = 'correct horse';

/** What whoever has a copy of the state folder reaches, without the key it is sealed with; see SECURITY.md. */
describe('a stolen state folder without the root key and the KEK', () => {
  let kms: PreparedKms;
  let copy: string;
  let enc: Value;
  before(async () => {
    kms = await prepareKms();
    await kms.start({ KMS_ROOT_KEY_B64: ROOT_KEY.toString('base64') });
    const api = await kms.bus.as('pillar-api');
    const { items } = await api.request(kmsSeal, { items: [{ context, value: PLAIN }] }, call());
    assert.ok(items[0]?.ok);
    enc = encodeTree(zEnc, items[0].result);
    // The keyring and the keys of identities are in use as well.
    const asked = { task: 't1', template: 'deploy' };
    await api.request(kmsIssueTask, await kms.granted(kmsIssueTask, asked), call());
    copy = path.join(kms.dir, 'stolen');
    await cp(kms.stateDir, copy, { recursive: true });
  });
  after(() => kms[Symbol.asyncDispose]());

  const read = async (...parts: string[]) => JSON.parse(await readFile(path.join(copy, ...parts), 'utf8'));

  test('signs tokens of masters that the KMS takes', async () => {
    const { active, keys } = (await read('identity-key.json')) as {
      active: string;
      keys: (JWK & { kid: string })[];
    };
    const jwk = keys.find(({ kid }) => kid === active) ?? assert.fail('no key');
    const token = await new SignJWT({})
      .setProtectedHeader({ alg: 'EdDSA', kid: active, typ: MASTER_TOKEN_TYP })
      .setIssuer(IDENTITY_ISSUER)
      .setSubject('master:m1')
      .setAudience(BRIDGE_AUDIENCE)
      .setJti(randomUUID())
      .setIssuedAt()
      .setNotBefore('0s')
      .setExpirationTime('10m')
      .sign(createPrivateKey({ format: 'jwk', key: jwk as never }));
    const merger = await kms.bus.as('pillar-merger');
    const message = { token, master: 'm1', minion_id: 'web', items: [{ context, enc }] };
    const { items } = await merger.request(kmsOpenForMerger, message, call());
    assert.deepEqual(items[0]?.ok && items[0].result, PLAIN);
  });

  test('with the nkey of pillar-api and the store reveals every secret, by grants of any user', async () => {
    const [file = ''] = await readdir(path.join(copy, 'readers'));
    const reader = (await read('readers', file)) as { token_id: string; sub: string; grant_key_hex: string };
    const grant = await new SignJWT({
      act: 'reveal',
      res: grantResource(kmsOpenForApi, { context, enc }),
    })
      .setProtectedHeader({ alg: 'HS256', kid: reader.token_id })
      .setAudience(GRANT_AUDIENCE)
      .setSubject(reader.sub)
      .setJti(randomUUID())
      .setIssuedAt()
      .setExpirationTime('30s')
      .sign(Buffer.from(reader.grant_key_hex, 'hex'));
    const thief = await kms.bus.as('pillar-api');
    assert.equal((await thief.request(kmsOpenForApi, { grant, context, enc }, call())).value, PLAIN);
  });

  test('holds neither the KEK nor a key of the keyring in the clear, nor the tokens of users', async () => {
    const files = (await readdir(copy, { recursive: true, withFileTypes: true })).filter((one) =>
      one.isFile(),
    );
    assert.ok(files.length >= 6, String(files.length));
    const secrets = [KEK_B64, Buffer.from(KEK_B64, 'base64').toString('hex'), ROOT_KEY.toString('base64')];
    secrets.push(ROOT_KEY.toString('hex'), kms.admin.token, kms.admin.token.split('_')[2] ?? assert.fail());
    for (const { parentPath, name } of files) {
      const text = await readFile(path.join(parentPath, name), 'latin1');
      for (const secret of secrets) assert.ok(!text.includes(secret), name);
    }
    // Identities of workloads are signed from a key that lies sealed, unlike those of masters.
    const version = (await read('keyring', 'identity', 'v000001.json')) as { sealed: { ct_b64: string } };
    assert.equal(Buffer.from(version.sealed.ct_b64, 'base64').length, 32 + 16);
  });

  test('opens nothing by itself: no KMS starts on it without the root key that sealed it', async () => {
    const start = (changes: Record<string, string | undefined>) =>
      kms.start({ KMS_STATE_DIR: copy, PILLARS_KEK_B64: undefined, ...changes });
    await assert.rejects(start({ KMS_ROOT_KEY_B64: randomBytes(32).toString('base64') }), {
      code: 'misconfigured',
      message: /root key/u,
    });
    // Without any it starts as one that has no key; the grant is good, and opens nothing.
    await using alone = await prepareKms();
    await alone.start({
      ...{ KMS_STATE_DIR: copy, PILLARS_KEK_B64: undefined, BOOTSTRAP_TOKEN_FILE: undefined },
    });
    const thief = await alone.bus.as('pillar-api');
    const asked = await kms.granted(kmsOpenForApi, { context, enc });
    await rejects(thief.request(kmsOpenForApi, asked, call()), 'key_not_configured');
  });
});
