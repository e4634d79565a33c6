import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { createApiClient } from '@colonnade/embedded';
import { decodeJwt, decodeProtectedHeader, generateKeyPair, SignJWT } from 'jose';
import { ensureVenv } from '../../../test/support/python.ts';
import { type ApiWorld, plain, sendPlain, startWorld } from './support.ts';

const REQUIREMENTS = ['pyjwt==2.15.1', 'joserfc==1.8.0', 'cryptography==50.0.2'];
const ISSUER = 'https://colonnade.example';

/** PyJWT and joserfc, which know the issuer's URL and nothing else of ours. */
describe('identities, checked by other libraries from the published keys', () => {
  let world: ApiWorld;
  let python: string;
  before(async () => {
    python = await ensureVenv('jose', REQUIREMENTS);
    world = await startWorld({
      kmsEnv: { KMS_IDENTITY_ISSUER: ISSUER, KMS_IDENTITY_AUDIENCES: 'elsewhere' },
    });
    await sendPlain(world.admin, 'POST', '/masters', { id: 'm1' });
    const fresh = { 'if-none-match': '*' };
    await sendPlain(world.admin, 'PUT', '/masters/m1/minions/web-1', { collections: [] }, fresh);
    await sendPlain(world.admin, 'POST', '/tasks/templates', { id: 'deploy', name: 'deploy', schema: {} });
  });
  after(() => world[Symbol.asyncDispose]());

  const ask = async (tokens: readonly { token: string; audience: string }[]): Promise<[string, string][]> => {
    const child = spawn(python, [new URL('jose_libraries.py', import.meta.url).pathname]);
    child.stdin.end(JSON.stringify({ issuer: ISSUER, base: world.api.url.replace(/\/$/u, ''), tokens }));
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
    assert.notEqual(out, '', err);
    return JSON.parse(out) as [string, string][];
  };

  test('good ones are good to all, in both algorithms, and bad ones to nobody', async () => {
    const minions = [{ master: 'm1', minion_id: 'web-1' }];
    const made = await sendPlain(world.admin, 'POST', '/tasks', { tpl_id: 'deploy', minions, pillars: [] });
    const { id, identity } = plain(made) as { id: string; identity: { token: string } };
    const client = createApiClient(world.api.url, identity.token);
    const renew = async (body: object) =>
      String(plain(await sendPlain(client, 'POST', '/identity/renew', body)).token);
    const es256 = await renew({ algorithm: 'ES256' });
    const foreign = await renew({ audience: 'elsewhere', algorithm: 'ES256' });
    const audience = 'colonnade';
    const good = [
      { token: identity.token, audience },
      { token: es256, audience },
      { token: foreign, audience: 'elsewhere' },
    ];
    const { kid = '' } = decodeProtectedHeader(identity.token);
    const { privateKey } = await generateKeyPair('EdDSA');
    const forged = await new SignJWT(decodeJwt(identity.token))
      .setProtectedHeader({ alg: 'EdDSA', kid })
      .sign(privateKey);
    const [, payload] = identity.token.split('.');
    const none = Buffer.from(JSON.stringify({ alg: 'none', kid })).toString('base64url');
    const bad = [
      { token: identity.token, audience: 'elsewhere' },
      { token: foreign, audience },
      { token: forged, audience },
      { token: `${none}.${payload}.`, audience },
      { token: identity.token.slice(0, -8), audience },
      { token: identity.token + identity.token, audience },
    ];
    const answers = await ask([...good, ...bad]);
    assert.deepEqual(answers.slice(0, 3), Array(3).fill([`task:${id}`, `task:${id}`]));
    for (const [at, answer] of answers.slice(3).entries())
      for (const one of answer) assert.match(one, /^refused: /u, String(at));
  });
});
