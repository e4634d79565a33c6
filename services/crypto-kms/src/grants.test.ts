import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { deriveGrantKey, GRANT_AUDIENCE, type GrantAct } from '@colonnade/contracts';
import { type JWTPayload, SignJWT } from 'jose';
import { createGrants, type Grants } from './grants.ts';
import { openReaders, type Reader, type Readers } from './readers.ts';
import type { RevealPlace } from './reveal-scope.ts';
import { openUsedGrants } from './used-grants.ts';

const RES = 'minion:web1:minion_id:web1;master:m1:db';

let dir: string;
let readers: Readers;
let grants: Grants;
let now = 1_800_000_000;

type Token = { id: string; key: Buffer; sub: string };
let alice: Token;
let admin: Token;
let temp: Token;

before(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'colonnade-grants-'));
  readers = await openReaders(path.join(dir, 'state'));
  grants = createGrants(readers, openUsedGrants(path.join(dir, 'state')), () => now);
  alice = await addReader('alice', ['reveal']);
  admin = await addReader('root', ['admin']);
  temp = await addReader('temp', ['reveal'], (now + 100) * 1000);
});
after(() => rm(dir, { recursive: true }));

async function addReader(
  sub: string,
  rights: Reader['rights'],
  expiresAtMs: number | null = null,
  scopes?: Reader['reveal_scopes'],
): Promise<Token> {
  const id = randomBytes(8).toString('hex');
  const key = deriveGrantKey(`col_${id}_${randomBytes(32).toString('base64url')}`);
  await readers.put({
    token_id: id,
    sub,
    rights,
    ...(scopes === undefined ? {} : { reveal_scopes: scopes }),
    grant_key_hex: key.toString('hex'),
    expires_at_ms: expiresAtMs,
    origin: 'api',
  });
  return { id, key, sub };
}

function sign(
  by: Token,
  over: JWTPayload = {},
  header: object = {},
  key: Uint8Array = by.key,
): Promise<string> {
  const claims = {
    aud: GRANT_AUDIENCE,
    sub: by.sub,
    act: 'reveal',
    res: RES,
    jti: randomUUID(),
    iat: now,
    exp: now + 30,
    ...over,
  };
  return new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: by.id, ...header }).sign(key);
}

async function outcome(
  grant: string,
  act: GrantAct = 'reveal',
  res = RES,
  reveals: readonly RevealPlace[] = [],
): Promise<string> {
  const { holder, refusal } = await grants.use(grant, act, res, reveals);
  if (refusal === undefined) return `good for ${holder?.sub}`;
  return `${refusal.code}: ${refusal.message}`;
}

test('a grant is good once', async () => {
  const grant = await sign(alice);
  assert.equal(await outcome(grant), 'good for alice');
  assert.match(await outcome(grant), /^unauthorized: .* used already/u);
});

test('of many tries at once, at two replicas, exactly one is let through', async () => {
  const other = createGrants(
    await openReaders(path.join(dir, 'state')),
    openUsedGrants(path.join(dir, 'state')),
    () => now,
  );
  for (let round = 0; round < 10; round += 1) {
    const grant = await sign(alice);
    const uses = await Promise.all(
      [grants, other, grants, other].map((g) => g.use(grant, 'reveal', RES, [])),
    );
    assert.equal(uses.filter((use) => use.refusal === undefined).length, 1);
  }
});

test('a refused grant is not used up by the refusal', async () => {
  const grant = await sign(alice);
  assert.match(await outcome(grant, 'reveal', `${RES}x`), /another resource/u);
  assert.match(await outcome(grant, 'reader.put'), /another act/u);
  assert.equal(await outcome(grant), 'good for alice');
});

describe('rights', () => {
  const acts: GrantAct[] = ['master.issue', 'master.revoke', 'reader.put', 'reader.delete'];
  for (const act of acts) {
    test(`${act} needs an admin`, async () => {
      assert.match(await outcome(await sign(alice, { act }), act), /^forbidden: /u);
      assert.equal(await outcome(await sign(admin, { act }), act), 'good for root');
    });
  }
  test('an admin may not reveal for that', async () =>
    assert.match(await outcome(await sign(admin)), /^forbidden: /u));
});

test('clocks may differ by five seconds, and no more', async () => {
  const ages = [
    [-4, 'good for alice'],
    [34, 'good for alice'],
    [-6, 'unauthorized'],
    [36, 'unauthorized'],
  ] as const;
  for (const [age, expected] of ages) {
    const text = await outcome(await sign(alice, { iat: now - age, exp: now - age + 30 }));
    assert.ok(text.startsWith(expected), `${age}: ${text}`);
  }
});

describe('refused', () => {
  const table: [string, () => Promise<string> | string, RegExp][] = [
    ['for another act', () => sign(alice, { act: 'master.issue' }), /another act/u],
    ['for an act nobody knows', () => sign(alice, { act: 'everything' }), /wrong or missing claim/u],
    ['for another resource', () => sign(alice, { res: `${RES}2` }), /another resource/u],
    ['for a part of the resource', () => sign(alice, { res: RES.slice(0, -1) }), /another resource/u],
    ["under another user's name", () => sign(alice, { sub: 'root' }), /another user/u],
    ['signed with the key of another reader', () => sign(alice, {}, {}, admin.key), /not a grant/u],
    ['by a reader nobody knows', () => sign({ ...alice, id: 'ffffffff' }), /not signed by a known/u],
    [
      'by a reader whose id is a path',
      () => sign({ ...alice, id: '../identity-key' }),
      /not signed by a known/u,
    ],
    ['without kid', () => sign(alice, {}, { kid: undefined }), /not signed by a known/u],
    [
      'with another HMAC',
      () => sign(alice, {}, { alg: 'HS512' }, Buffer.concat([alice.key, alice.key])),
      /not a grant/u,
    ],
    [
      'alg none',
      async () =>
        `${Buffer.from(JSON.stringify({ alg: 'none', kid: alice.id })).toString('base64url')}.${(await sign(alice)).split('.')[1]}.`,
      /not a grant/u,
    ],
    ['for another audience', () => sign(alice, { aud: 'pillar-api' }), /"aud"/u],
    ['without jti', () => sign(alice, { jti: undefined }), /wrong or missing claim/u],
    ['with a short jti', () => sign(alice, { jti: 'x' }), /wrong or missing claim/u],
    ['expired', () => sign(alice, { iat: now - 36, exp: now - 6 }), /expired/u],
    ['without exp', () => sign(alice, { exp: undefined }), /"exp"/u],
    ['without iat', () => sign(alice, { iat: undefined }), /"iat"/u],
    ['living too long', () => sign(alice, { exp: now + 31 }), /lives longer/u],
    ['from the future', () => sign(alice, { iat: now + 60, exp: now + 80 }), /"iat"/u],
    ['old, with a late expiry', () => sign(alice, { iat: now - 60, exp: now + 20 }), /expired|lives longer/u],
    ['no JWT', () => 'grant', /not a grant/u],
  ];
  for (const [name, make, message] of table) {
    test(name, async () => {
      const text = await outcome(await make());
      assert.match(text, /^unauthorized: /u);
      assert.match(text, message);
    });
  }
  test('by a token that has expired', async () => {
    assert.equal(await outcome(await sign(temp)), 'good for temp');
    now += 100;
    assert.match(await outcome(await sign(temp)), /has expired/u);
  });
  test('by a token that was deleted', async () => {
    const gone = await addReader('gone', ['reveal']);
    assert.equal(await outcome(await sign(gone)), 'good for gone');
    await readers.remove(gone.id);
    assert.match(await outcome(await sign(gone)), /not signed by a known/u);
  });
});

test('used grants are forgotten once they have expired anyway', async () => {
  const used = path.join(dir, 'state', 'used-grants');
  const before = await readdir(used);
  assert.ok(before.length > 10);
  for (const name of before) await utimes(path.join(used, name), 0, 0);
  const fresh = openUsedGrants(path.join(dir, 'state'));
  assert.equal(await fresh.use('k', 'j'), true);
  assert.equal((await readdir(used)).length, 1);
  assert.equal(await fresh.use('k', 'j'), false);
});

test('a token with scopes reveals in them only, whatever its grant says, and spends nothing when it is refused', async () => {
  const scoped = await addReader('sam', ['reveal', 'task'], null, [
    { tgt_types: ['root'], name_prefixes: ['db-'] },
    { collections: ['c1'] },
  ]);
  const at = async (place: RevealPlace) => outcome(await sign(scoped), 'reveal', RES, [place]);
  assert.equal(await at({ tgt_type: 'root', name: 'db-password' }), 'good for sam');
  // Which collections are below which only the estate knows.
  assert.equal(await at({ tgt_type: 'collection', name: 'any' }), 'good for sam');
  const refused = /^forbidden: .*for other targets or names/u;
  for (const place of [
    { tgt_type: 'root', name: 'other' },
    { tgt_type: 'minion', name: 'db-password' },
    { tgt_type: 'task' },
  ] as const)
    assert.match(await at(place), refused);
  const grant = await sign(scoped);
  const both = [
    { tgt_type: 'root', name: 'db-a' },
    { tgt_type: 'task_tpl', name: 'db-a' },
  ] as const;
  assert.match(await outcome(grant, 'reveal', RES, both), refused);
  assert.equal(await outcome(grant, 'reveal', RES, both.slice(0, 1)), 'good for sam');
  assert.equal(await outcome(await sign(alice), 'reveal', RES, both), 'good for alice');
});

test('what opens secrets by another act needs the right to reveal beside that of the act', async () => {
  const editor = await addReader('eve', ['task']);
  const claims = { act: 'task.issue' };
  const place = [{ tgt_type: 'task' }] as const;
  assert.match(
    await outcome(await sign(editor, claims), 'task.issue', RES, place),
    /^forbidden: .*"reveal"/u,
  );
  const both = await addReader('ann', ['task', 'reveal']);
  assert.equal(await outcome(await sign(both, claims), 'task.issue', RES, place), 'good for ann');
});
