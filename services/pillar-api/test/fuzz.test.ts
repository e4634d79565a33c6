import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  encodeTree,
  hasEncMarker,
  hasNestedEncMarker,
  kmsSeal,
  rootTarget,
  startCall,
  zEnc,
} from '@colonnade/contracts';
import { createApiClient } from '@colonnade/embedded';
import { parseValue, toPlain, type Value, valuesEqual } from '@colonnade/value';
import fc from 'fast-check';
import { assertTellsNothing, fuzzRuns, mutantsOf } from '../../../test/support/fuzz.ts';
import { type EncFields, encMutants } from '../../../test/support/fuzz-enc.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { startOidcIssuer } from './oidc-issuer.ts';
import { type ApiWorld, plain, sendPlain, startWorld } from './support.ts';

const SECRET = 'correct horse battery staple';
const AUDIENCE = 'colonnade';
/** Headers larger than this never come as far as pillar-api. */
const HEADER_CHARS = 12_000;

describe('pillar-api, asked with mutants', () => {
  const owned = new AsyncDisposableStack();
  let world: ApiWorld;
  let ofIssuer: string;
  before(async () => {
    const issuer = owned.use(await startOidcIssuer(AUDIENCE));
    const file = path.join(owned.use(await tempDir('roles')).path, 'roles.json');
    await writeFile(file, JSON.stringify([{ group: 'admins', role: 'admin' }]));
    const oidc = { OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE, OIDC_ROLES_FILE: file };
    world = owned.use(await startWorld({ env: { ...oidc, DENIALS_PER_MINUTE: '1000000' } }));
    ofIssuer = await issuer.sign({ sub: 'olga', groups: ['admins'] });
    await sendPlain(world.admin, 'POST', '/masters', { id: 'm1' });
    await sendPlain(
      world.admin,
      'PUT',
      '/masters/m1/minions/web-1',
      { collections: [] },
      { 'if-none-match': '*' },
    );
    await sendPlain(world.admin, 'POST', '/tasks/templates', { id: 'deploy', name: 'deploy', schema: {} });
  });
  after(() => owned.disposeAsync());

  const statusOf = async (headers: Record<string, string>, route: string) => {
    const [method = '', url = ''] = route.split(' ');
    const answer = await fetch(new URL(url, world.api.url), { method, headers });
    return { status: answer.status, text: await answer.text() };
  };
  const enrolment = async () =>
    String(
      plain(await sendPlain(world.admin, 'POST', '/masters/m1/enrolments', { expires_in_s: 600 })).token,
    );

  /** In either header; what no header can carry is carried as bytes. */
  async function refuses(genuine: readonly string[], route: string) {
    const name = fc.constantFrom('authorization', 'x-colonnade-token');
    const property = fc.asyncProperty(mutantsOf(genuine), name, async (mutant, header) => {
      const token = asHeader(mutant);
      if (genuine.includes(token) || token.length > HEADER_CHARS) return;
      const value = header === 'authorization' ? `Bearer ${token}` : token;
      const { status, text } = await statusOf({ [header]: value }, route);
      assert.ok(status === 401 || status === 400, `${status} ${text}`);
      assertTellsNothing(text, genuine);
    });
    await fc.assert(property, fuzzRuns(300, 10_000));
  }

  test('bearer tokens of every kind: each mutant is refused, and the genuine are good after it', async () => {
    const minions = [{ master: 'm1', minion_id: 'web-1' }];
    const made = await sendPlain(world.admin, 'POST', '/tasks', { tpl_id: 'deploy', minions, pillars: [] });
    const { identity } = plain(made) as { identity: { token: string } };
    const viewer = (await world.tokenOf(['viewer'])).token;
    const once = await enrolment();
    const enrolled = plain(await createApiClient(world.api.url, once).send('POST', '/identity/enrol'));
    const master = String(enrolled.token);
    const unused = await enrolment();

    for (const [genuine, route] of [
      [[world.adminToken, viewer], 'GET /whoami'],
      [[ofIssuer], 'GET /whoami'],
      [[identity.token, master], 'GET /identity'],
      [[unused], 'POST /identity/enrol'],
    ] as const) {
      await refuses(genuine, route);
      for (const token of genuine) {
        const answer = await statusOf({ authorization: `Bearer ${token}` }, route);
        assert.ok(answer.status < 300, `${route}: ${answer.text}`);
      }
    }
    for (const token of [once, unused])
      assert.equal(
        (await statusOf({ authorization: `Bearer ${token}` }, 'POST /identity/enrol')).status,
        401,
      );
  });

  test('values that come sealed: only what opens in that very place is taken', async () => {
    const bus = await world.bus.as('pillar-api');
    const { tgtType: tgt_type, tgtId: tgt_id, pillarenv } = rootTarget;
    const asked = ['given', 'other'].map((name) => ({
      ...{ context: { tgt_type, tgt_id, pillarenv, name }, value: SECRET },
    }));
    const { items } = await bus.request(kmsSeal, { items: asked }, startCall(5000));
    const sealed = items.map((item) => (item.ok ? encodeTree(zEnc, item.result) : assert.fail()));
    const fields = sealed.map((value) => (toPlain(value) as { $enc: EncFields }).$enc);
    const routes = [
      ['/pillars', 'application/json', ''],
      ['/import', 'application/x-ndjson', '"kind":"pillar",'],
    ] as const;
    const create = async (text: string, [url, type, kind]: (typeof routes)[number]) => {
      const body = `{${kind}"tgt_type":"root","name":"given","is_secret":true,"value":${text}}`;
      const headers = { authorization: `Bearer ${world.adminToken}`, 'content-type': type };
      const answer = await fetch(new URL(url, world.api.url), { method: 'POST', headers, body });
      return { status: answer.status, text: await answer.text() };
    };
    await fc.assert(
      fc.asyncProperty(encMutants(fields), fc.constantFrom(...routes), async (text, route) => {
        const value = parse(text);
        // Not sealed at all: a secret like any other.
        if (value !== undefined && !hasEncMarker(value) && !hasNestedEncMarker(value)) return;
        if (value !== undefined && valuesEqual(value, sealed[0] as Value)) return;
        const answer = await create(text, route);
        assert.ok([400, 413, 422].includes(answer.status), `${answer.status} ${answer.text}`);
        assertTellsNothing(answer.text, [SECRET, ...fields.map(({ ct_b64 }) => String(ct_b64))]);
      }),
      fuzzRuns(300),
    );
    const made = await create(JSON.stringify({ $enc: fields[0] }), routes[0]);
    assert.equal(made.status, 201, made.text);
    const { pid } = JSON.parse(made.text) as { pid: string };
    assert.equal(plain(await world.admin.send('POST', `/pillars/${pid}/reveal`)).value, SECRET);
  });
});

/** The bytes of a text that a header may have, blanks around it gone, as every reader of headers takes them away. */
function asHeader(text: string): string {
  return Buffer.from(text)
    .toString('latin1')
    .replace(/[^\t\x20-\x7e\x80-\xff]/gu, '?')
    .replace(/^[\t ]+|[\t ]+$/gu, '');
}

function parse(text: string): Value | undefined {
  try {
    return parseValue(text);
  } catch {
    return undefined;
  }
}
