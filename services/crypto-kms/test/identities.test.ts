import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import {
  BOOTSTRAP_SUB,
  BRIDGE_AUDIENCE,
  deriveGrantKey,
  IDENTITY_ISSUER,
  kmsDeleteReader,
  kmsIssueMaster,
  kmsJwks,
  kmsMac,
  kmsOpenForMerger,
  kmsPutReader,
  kmsRevokeIdentity,
  rootTarget,
} from '@colonnade/contracts';
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose';
import { call, makeApiToken, type PreparedKms, prepareKms, rejects, withGrant } from './support.ts';

let kms: PreparedKms;
let url: string;
let api: Bus;
let merger: Bus;

before(async () => {
  kms = await prepareKms();
  ({ url } = await kms.start());
  // A second replica on the same state: every request below may reach either.
  await kms.start();
  api = await kms.bus.as('pillar-api');
  merger = await kms.bus.as('pillar-merger');
});
after(() => kms[Symbol.asyncDispose]());

const issue = async (master: string) =>
  api.request(kmsIssueMaster, await kms.granted(kmsIssueMaster, { master, lifetime_s: 600 }), call());
const revoke = async (jti: string) =>
  api.request(kmsRevokeIdentity, await kms.granted(kmsRevokeIdentity, { jti }), call());

/** The code with which a merge under this token is answered; an item that does not open counts as let in. */
async function openWith(token: string, master = 'm1'): Promise<string> {
  const context = {
    tgt_type: rootTarget.tgtType,
    tgt_id: rootTarget.tgtId,
    pillarenv: rootTarget.pillarenv,
    name: 'x',
  };
  const request = { token, master, minion_id: 'web1', items: [{ context, enc: 'not sealed' }] };
  try {
    await merger.request(kmsOpenForMerger, request, call());
    return 'let in';
  } catch (thrown) {
    return (thrown as { code: string }).code;
  }
}

async function putReader(rights: ('reveal' | 'admin')[], sub: string, expiresAtMs: number | null = null) {
  const reader = makeApiToken();
  const message = {
    token_id: reader.id,
    sub,
    rights,
    grant_key_hex: deriveGrantKey(reader.token).toString('hex'),
    expires_at_ms: expiresAtMs,
  };
  await api.request(kmsPutReader, await kms.granted(kmsPutReader, message), call());
  return { ...reader, sub, message };
}

describe('tokens of masters', () => {
  test('carry what the bridge needs and verify with the published keys alone', async () => {
    const { token, jti, expires_at_ms } = await issue('m1');
    const overBus = await merger.request(kmsJwks, {}, call());
    const overHttp = await (await fetch(`${url}/.well-known/jwks.json`)).json();
    assert.deepEqual(JSON.parse(JSON.stringify({ keys: overBus.keys })), overHttp);
    assert.ok(!JSON.stringify(overHttp).includes('"d"'));
    const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet(overHttp as never), {
      issuer: IDENTITY_ISSUER,
      audience: BRIDGE_AUDIENCE,
      algorithms: ['EdDSA'],
    });
    assert.equal(payload.sub, 'master:m1');
    assert.equal(payload.jti, jti);
    assert.equal((payload.exp ?? 0) * 1000, expires_at_ms);
    assert.equal((payload.exp ?? 0) - (payload.iat ?? 0), 600);
    assert.equal(protectedHeader.kid, overBus.keys[0]?.kid);
  });

  test('open merges of their master until they are revoked, at every replica', async () => {
    const { token, jti } = await issue('m1');
    for (let i = 0; i < 10; i += 1) assert.equal(await openWith(token), 'let in');
    assert.equal(await openWith(token, 'm2'), 'unauthorized');
    await revoke(jti);
    for (let i = 0; i < 10; i += 1) assert.equal(await openWith(token), 'unauthorized');
    await revoke(jti);
    assert.equal(await openWith((await issue('m1')).token), 'let in');
    // A third one that starts later knows as well.
    await using _third = await kms.start();
    for (let i = 0; i < 15; i += 1) assert.equal(await openWith(token), 'unauthorized');
  });

  test('are issued and revoked only with an admin grant for exactly that', async () => {
    const asked = { master: 'm1', lifetime_s: 600 };
    const request = async ({ grant }: { grant: string }) =>
      api.request(kmsIssueMaster, { grant, ...asked }, call());
    const jti = randomUUID();
    const revoking = await kms.granted(kmsRevokeIdentity, { jti });
    await rejects(request(await kms.granted(kmsIssueMaster, { ...asked, master: 'm2' })), 'unauthorized');
    await rejects(request(revoking), 'unauthorized');
    await rejects(request({ grant: 'not a grant' }), 'unauthorized');
    const reader = await putReader(['reveal'], 'alice');
    await rejects(request(await withGrant(reader, kmsIssueMaster, asked)), 'forbidden');
    await rejects(api.request(kmsRevokeIdentity, { ...revoking, jti: randomUUID() }, call()), 'unauthorized');
    const failed = (await kms.records()).filter(
      (r) => r.verb === 'master.issue' && r.stage === 'ResponseComplete' && r.responseStatus?.code !== 200,
    );
    assert.deepEqual(
      failed.slice(-4).map((r) => [r.user.username, r.responseStatus?.code]),
      [
        [BOOTSTRAP_SUB, 401],
        [BOOTSTRAP_SUB, 401],
        ['system:anonymous', 401],
        ['alice', 403],
      ],
    );
  });

  test('a change is on record before it is made', async () => {
    const { jti } = await issue('m7');
    await revoke(jti);
    const stages = (await kms.records()).filter((r) => r.objectRef?.name === jti).map((r) => r.stage);
    assert.deepEqual(stages, ['RequestReceived', 'ResponseComplete']);
  });
});

describe('readers', () => {
  test('a put reader may use its rights, a deleted one nothing', async () => {
    const bob = await putReader(['admin'], 'bob');
    const asked = { master: 'm3', lifetime_s: 60 };
    const use = async () => api.request(kmsIssueMaster, await withGrant(bob, kmsIssueMaster, asked), call());
    for (let i = 0; i < 4; i += 1) await use();
    const remove = async () =>
      api.request(kmsDeleteReader, await kms.granted(kmsDeleteReader, { token_id: bob.id }), call());
    assert.equal((await remove()).deleted, true);
    assert.equal((await remove()).deleted, false);
    for (let i = 0; i < 4; i += 1) await rejects(use(), 'unauthorized');
  });

  test('cannot be put by someone who is no admin, nor taken over with another key', async () => {
    const carol = await putReader(['reveal'], 'carol');
    await api.request(kmsPutReader, await kms.granted(kmsPutReader, carol.message), call());
    const stolen = { ...carol.message, grant_key_hex: randomBytes(32).toString('hex') };
    await rejects(api.request(kmsPutReader, await kms.granted(kmsPutReader, stolen), call()), 'conflict');
    const own = { ...carol.message, rights: ['admin' as const] };
    await rejects(api.request(kmsPutReader, await withGrant(carol, kmsPutReader, own), call()), 'forbidden');
  });

  test('are kept from other users of the machine', async () => {
    const files = await readdir(kms.stateDir, { recursive: true, withFileTypes: true });
    assert.ok(files.length >= 6);
    for (const file of files) {
      const { mode } = await stat(path.join(file.parentPath, file.name));
      assert.equal(mode & 0o777, file.isDirectory() ? 0o700 : 0o600, file.name);
    }
  });
});

test('a deleted bootstrap token stays deleted over a restart; a new one is taken up', async () => {
  const second = makeApiToken();
  const file = path.join(kms.dir, 'second-token');
  await writeFile(file, second.token, { mode: 0o600 });
  const start = () => kms.start({ BOOTSTRAP_TOKEN_FILE: file });
  const use = async () => {
    const asked = { master: 'm1', lifetime_s: 60 };
    const holder = { token: second.token, sub: BOOTSTRAP_SUB };
    return api.request(kmsIssueMaster, await withGrant(holder, kmsIssueMaster, asked), call());
  };
  await rejects(use(), 'unauthorized');
  await (await start())[Symbol.asyncDispose]();
  await use();
  const asked = await kms.granted(kmsDeleteReader, { token_id: second.id });
  assert.equal((await api.request(kmsDeleteReader, asked, call())).deleted, true);
  await (await start())[Symbol.asyncDispose]();
  await rejects(use(), 'unauthorized');
});

test('the bootstrap token comes back when nobody could administer any more', async () => {
  await using own = await prepareKms();
  const first = await own.start();
  const ownApi = await own.bus.as('pillar-api');
  await ownApi.request(
    kmsDeleteReader,
    await own.granted(kmsDeleteReader, { token_id: own.admin.id }),
    call(),
  );
  const use = async () => {
    const asked = { master: 'm1', lifetime_s: 60 };
    return ownApi.request(kmsIssueMaster, await own.granted(kmsIssueMaster, asked), call());
  };
  await rejects(use(), 'unauthorized');
  await first[Symbol.asyncDispose]();
  await own.start();
  await use();
});

test('the fingerprint is the same at every replica and needs the key', async () => {
  const ask = async (hex: string) => (await api.request(kmsMac, { sha256_hex: hex }, call())).mac_hex;
  const macs = new Set(await Promise.all(Array.from({ length: 10 }, () => ask('ab'.repeat(32)))));
  assert.equal(macs.size, 1);
  assert.ok(!macs.has(await ask('ac'.repeat(32))));
  const file = await readFile(path.join(kms.stateDir, 'mac-key.json'), 'utf8');
  assert.ok(!file.includes([...macs][0] as string));
});

test('a token says when it ends, and nothing secret', async () => {
  assert.deepEqual(Object.keys(decodeJwt((await issue('m1')).token)).sort(), [
    'aud',
    'exp',
    'iat',
    'iss',
    'jti',
    'nbf',
    'sub',
  ]);
});
