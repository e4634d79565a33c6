import assert from 'node:assert/strict';
import { createHmac, createPublicKey } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type ApiClient, createApiClient } from '@colonnade/embedded';
import type { JWK, JWTPayload } from 'jose';
import { tempDir } from '../../../test/support/temp.ts';
import { type OidcIssuer, startOidcIssuer } from './oidc-issuer.ts';
import { type ApiWorld, assertProblem, plain, sendPlain, startWorld } from './support.ts';

const AUDIENCE = 'colonnade';
const ROLES = [
  { group: 'admins', role: 'admin' },
  { group: 'staff', role: 'viewer' },
  { group: 'web', role: 'editor', collections: ['web'] },
];
const nowS = () => Math.floor(Date.now() / 1000);
const base64 = (data: unknown) => Buffer.from(JSON.stringify(data)).toString('base64url');

describe('bearer tokens of an OpenID Connect issuer', () => {
  let world: ApiWorld;
  let issuer: OidcIssuer;
  let dir: Awaited<ReturnType<typeof tempDir>>;

  before(async () => {
    dir = await tempDir('oidc');
    issuer = await startOidcIssuer(AUDIENCE);
    const file = path.join(dir.path, 'roles.json');
    await writeFile(file, JSON.stringify(ROLES));
    world = await startWorld({
      env: {
        ...{ OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE, OIDC_ROLES_FILE: file },
        DENIALS_PER_MINUTE: '1000',
        ...{ OIDC_GROUPS_CLAIM: 'realm.groups', OIDC_ALGORITHMS: 'RS256', OIDC_MAX_TOKEN_AGE_S: '600' },
      },
    });
  });
  after(async () => {
    await world?.[Symbol.asyncDispose]();
    await issuer?.[Symbol.asyncDispose]();
    await dir?.[Symbol.asyncDispose]();
  });

  const tokenOf = (groups: readonly string[], claims: JWTPayload = {}) =>
    issuer.sign({ sub: 'olga', realm: { groups }, ...claims });
  const client = (token: string): ApiClient => createApiClient(world.api.url, token);
  const refused = async (token: string, why: RegExp) => {
    const answer = await client(token).send('GET', '/whoami');
    assertProblem(answer, 401, 'unauthorized');
    assert.match(String(plain(answer).detail), why);
  };

  test('groups become roles, and the user is who the token says', async () => {
    const olga = client(await tokenOf(['staff', 'web', 'unheard-of']));
    const me = plain(await olga.send('GET', '/whoami'));
    assert.deepEqual(
      [me.sub, me.token_id, me.roles, me.scoped_roles],
      ['olga', null, ['viewer'], [{ role: 'editor', collections: ['web'] }]],
    );
    assertProblem(
      await sendPlain(olga, 'POST', '/tokens', { sub: 'x', roles: ['viewer'] }),
      403,
      'forbidden',
    );
    const made = await sendPlain(olga, 'POST', '/collections', { id: 'web', name: 'Web' });
    assert.deepEqual([made.status, plain(made).owner], [201, 'olga']);
    const pillar = { tgt_type: 'root', name: 'x', value: 1 };
    assertProblem(await sendPlain(olga, 'POST', '/pillars', pillar), 403, 'forbidden');
    const mine = { tgt_type: 'collection', collection_id: 'web', name: 'x', value: 1 };
    const named = await sendPlain(olga, 'POST', '/pillars', { ...mine, created_by: 'somebody' });
    assertProblem(named, 422, 'unprocessable', 'created_by');
    assert.equal(plain(await sendPlain(olga, 'POST', '/pillars', mine)).created_by, 'olga');
  });

  test('who is in no group that is written down may do nothing', async () => {
    for (const claims of [
      {},
      { realm: 'staff' },
      { realm: { groups: [7, null] } },
      { realm: { groups: {} } },
    ]) {
      const nobody = client(await issuer.sign({ sub: 'nob', ...claims } as JWTPayload));
      assertProblem(await nobody.send('GET', '/whoami'), 403, 'forbidden');
      assertProblem(await nobody.send('GET', '/masters'), 403, 'forbidden');
    }
  });

  test('another audience, issuer or time, and missing claims, are refused', async () => {
    await refused(await tokenOf(['admins'], { aud: 'another' }), /"aud"/u);
    await refused(await tokenOf(['admins'], { aud: undefined as never }), /"aud"/u);
    await refused(await issuer.sign({ sub: 'o' }, { issuer: 'https://evil.example' }), /"iss"/u);
    await refused(await tokenOf(['admins'], { exp: nowS() - 120 }), /expired/u);
    await refused(await tokenOf(['admins'], { nbf: nowS() + 120 }), /"nbf"/u);
    await refused(await tokenOf(['admins'], { iat: nowS() + 120 }), /"iat"/u);
    await refused(await tokenOf(['admins'], { iat: nowS() - 700, exp: nowS() + 300 }), /expired|"iat"/u);
    await refused(await tokenOf(['admins'], { exp: undefined as never }), /"exp"/u);
    await refused(await tokenOf(['admins'], { iat: undefined as never }), /"iat"/u);
    await refused(await issuer.sign({ realm: { groups: ['admins'] } }), /"sub"/u);
    await refused(await tokenOf(['admins'], { sub: 'a;user:b' }), /"sub"/u);
  });

  test('clocks may differ by half a minute', async () => {
    const skewed = { iat: nowS() + 15, nbf: nowS() + 15, exp: nowS() - 15 };
    assert.equal((await client(await tokenOf(['staff'], skewed)).send('GET', '/whoami')).status, 200);
  });

  test('no algorithm, another one, and a public key taken for a shared secret are refused', async () => {
    const claims = { iss: issuer.url, aud: AUDIENCE, sub: 'o', iat: nowS(), exp: nowS() + 60 };
    for (const alg of ['none', 'None', 'NONE']) {
      await refused(`${base64({ alg })}.${base64(claims)}.`, /algorithm|supported|well formed/u);
    }
    const es = await issuer.addKey('ES256');
    await refused(await issuer.sign({ sub: 'o' }, { kid: es }), /algorithm/u);
    const jwks = (await (await fetch(`${issuer.url}/jwks`)).json()) as { keys: JWK[] };
    const [jwk] = jwks.keys;
    const pem = createPublicKey({ key: jwk as never, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
    for (const secret of [pem, JSON.stringify(jwk), String(jwk?.n)]) {
      const text = `${base64({ alg: 'HS256', kid: jwk?.kid })}.${base64(claims)}`;
      const mac = createHmac('sha256', secret).update(text).digest('base64url');
      await refused(`${text}.${mac}`, /algorithm/u);
    }
    issuer.withdrawKey(es);
  });

  test('a changed token, and a key that came in its header, are refused', async () => {
    const [head, body, signature] = (await tokenOf(['staff'])).split('.') as [string, string, string];
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString());
    const forged = base64({ ...claims, realm: { groups: ['admins'] } });
    await refused(`${head}.${forged}.${signature}`, /signature|key/u);
    await refused(`${head}.${body}.`, /signature|well formed|key/u);
    const other = await startOidcIssuer(AUDIENCE);
    await using _ = other;
    const { keys } = (await (await fetch(`${other.url}/jwks`)).json()) as { keys: JWK[] };
    for (const header of [
      { jwk: keys[0] },
      { jku: `${other.url}/jwks` },
      { kid: 'key-1' },
      { kid: 'nobody' },
    ]) {
      const token = await other.sign(
        { sub: 'o', realm: { groups: ['admins'] } },
        { issuer: issuer.url, header },
      );
      await refused(token, /signature|key/u);
    }
    assert.equal(other.asked.get('/jwks'), 1, 'a token says where its keys are, and nobody looks there');
  });

  test('an unknown key is looked for, but not once for every token that claims one', async () => {
    const asked = () => issuer.asked.get('/jwks') ?? 0;
    const first = asked();
    for (let i = 0; i < 40; i += 1) {
      await refused(await tokenOf(['staff']).then((t) => withKid(t, `made-up-${i}`)), /key/u);
    }
    assert.ok(asked() - first <= 2, `asked ${asked() - first} times`);
    const kid = await issuer.addKey();
    await untilOk(client(await issuer.sign({ sub: 'olga', realm: { groups: ['staff'] } })));
    issuer.withdrawKey(kid);
  });

  test('a revoked user and a revoked token are refused at once, in every process, and others are not', async () => {
    const second = await world.startApi();
    const [first, other] = [
      await tokenOf(['staff'], { sub: 'rita', jti: 'rita-1' }),
      await tokenOf(['staff'], { jti: 'olga-1' }),
    ];
    const revoke = (body: object) => sendPlain(world.admin, 'POST', '/revocations', body);
    assert.equal((await client(first).send('GET', '/whoami')).status, 200);
    const made = await revoke({ sub: 'rita' });
    assert.deepEqual([made.status, plain(made).sub], [201, 'rita']);
    await refused(first, /revoked/u);
    assertProblem(await createApiClient(second.url, first).send('GET', '/whoami'), 401, 'unauthorized');
    assert.equal((await client(other).send('GET', '/whoami')).status, 200);
    assert.equal((await revoke({ jti: 'olga-1' })).status, 201);
    await refused(other, /revoked/u);
    assert.equal(
      (await client(await tokenOf(['staff'], { jti: 'olga-2' })).send('GET', '/whoami')).status,
      200,
    );
    const later = await tokenOf(['staff'], { sub: 'rita', iat: nowS() + 5 });
    assert.equal((await client(later).send('GET', '/whoami')).status, 200, 'the issuer let her in again');
    const listed = plain(await world.admin.send('GET', '/revocations')).items as { id: string }[];
    assert.equal(listed.length, 2);
    const tokens = JSON.stringify(plain(await world.admin.send('GET', '/tokens')));
    assert.ok(!tokens.includes('revoked.'), 'they are no tokens');
    for (const { id } of listed) {
      assertProblem(await world.admin.send('DELETE', `/tokens/${id}`), 404, 'not_found');
      assert.equal((await world.admin.send('DELETE', `/revocations/${id}`)).status, 204);
    }
    assert.equal((await client(first).send('GET', '/whoami')).status, 200);
    for (const body of [{}, { sub: 'a', jti: 'b' }, { sub: 'a:b' }]) {
      assertProblem(await revoke(body), 422, 'unprocessable');
    }
  });

  test('what needs a grant needs an API token, and the answer says so', async () => {
    const olga = client(await tokenOf(['admins']));
    const secret = { tgt_type: 'root', name: 'oidc_secret', value: 's', is_secret: true };
    const made = await sendPlain(olga, 'POST', '/pillars', secret);
    assert.equal(made.status, 201);
    for (const [url, body] of [
      [`/pillars/${plain(made).pid}/reveal`],
      ['/masters', { id: 'oidc' }],
      ['/tokens', { sub: 'x', roles: ['secret-reader'] }],
    ] as const) {
      const answer = await sendPlain(olga, 'POST', url, body);
      assertProblem(answer, 403, 'forbidden');
      assert.match(String(plain(answer).detail), /API token/u);
    }
    const bootstrap = world.adminToken.split('_')[1];
    assertProblem(await olga.send('DELETE', `/tokens/${bootstrap}`), 403, 'forbidden');
  });

  test('an issuer that is away, or lies, stops its own tokens only, and is asked again', async () => {
    const own = await world.startApi();
    const at = (one: string) => createApiClient(own.url, one).send('GET', '/whoami');
    const token = await tokenOf(['staff']);
    for (const body of ['{}', 'no json', JSON.stringify({ issuer: 'https://x', jwks_uri: 'https://x' })]) {
      issuer.answer = { body };
      assertProblem(await at(token), 503, 'unavailable');
    }
    issuer.answer = undefined;
    await issuer.stop();
    assert.equal((await at(world.adminToken)).status, 200);
    await issuer.start();
    await untilOk(createApiClient(own.url, token));
  });
});

async function untilOk(asker: ApiClient): Promise<void> {
  const limit = Date.now() + 25_000;
  let status = 0;
  while (status !== 200 && Date.now() < limit) {
    status = (await asker.send('GET', '/whoami')).status;
    if (status !== 200) await delay(100);
  }
  assert.equal(status, 200);
}

/** The token with another kid in its header; its signature is then wrong too. */
function withKid(token: string, kid: string): string {
  const [, body, signature] = token.split('.');
  return `${base64({ alg: 'RS256', kid })}.${body}.${signature}`;
}
