import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import {
  BOOTSTRAP_SUB,
  collectionTarget,
  deriveGrantKey,
  encodeText,
  encodeTree,
  grantResource,
  kmsCheck,
  kmsOpenForApi,
  kmsPutReader,
  kmsReseal,
  kmsSeal,
  minionTarget,
  type OpenContext,
  pillarAad,
  type ResolvedTarget,
  rootTarget,
  zAuditEvent,
  zEnc,
} from '@colonnade/contracts';
import { fromPlain, type Value, valuesEqual } from '@colonnade/value';
import {
  call,
  makeApiToken,
  type PreparedKms,
  prepareKms,
  rejects,
  signGrant,
  withGrant,
} from './support.ts';

let kms: PreparedKms;
let api: Bus;

before(async () => {
  kms = await prepareKms();
  await kms.start();
  api = await kms.bus.as('pillar-api');
});
after(() => kms[Symbol.asyncDispose]());

const contextOf = (target: ResolvedTarget, name: string): OpenContext => ({
  tgt_type: target.tgtType,
  tgt_id: target.tgtId,
  pillarenv: target.pillarenv,
  name,
});
const aadOf = (c: OpenContext) =>
  pillarAad({ tgtType: c.tgt_type, tgtId: c.tgt_id, pillarenv: c.pillarenv, name: c.name });

const SECRET = fromPlain({ password: 'hunter2', port: 5432, ratio: 0.5 });
const own = contextOf(minionTarget('web1', 'm1'), 'db');
const base = contextOf(rootTarget, 'db');
const shared = contextOf(collectionTarget('c1', 'alice'), 'db');

async function seal(context: OpenContext, value: Value): Promise<Value> {
  const { items } = await api.request(kmsSeal, { items: [{ context, value }] }, call());
  assert.ok(items[0]?.ok, JSON.stringify(items));
  return encodeTree(zEnc, items[0].result);
}

async function reveal(context: OpenContext, enc: Value): Promise<Value> {
  return (await api.request(kmsOpenForApi, await kms.granted(kmsOpenForApi, { context, enc }), call())).value;
}

type Move = { from: OpenContext; to: OpenContext; enc: Value };

async function reseal(items: Move[], over: { grantFor?: Move[]; token?: string; sub?: string } = {}) {
  const { grantFor = items, token = kms.admin.token, sub = BOOTSTRAP_SUB } = over;
  const { grant } = await withGrant({ token, sub }, kmsReseal, { items: grantFor });
  return (await api.request(kmsReseal, { grant, items }, call())).items;
}

const recordsOf = async (verb: string, failed = false) =>
  (await kms.records()).filter((r) => r.verb === verb && (r.responseStatus?.status === 'Failure') === failed);

test('a value is sealed for its new place, with another DEK, and opens there only', async () => {
  const enc = await seal(own, SECRET);
  const [item] = await reseal([{ from: own, to: base, enc }]);
  assert.ok(item?.ok, JSON.stringify(item));
  const moved = encodeTree(zEnc, item.result);
  assert.ok(valuesEqual(await reveal(base, moved), SECRET));
  await rejects(reveal(own, moved), 'decrypt_failed');
  const { $enc: before } = enc as { $enc: Record<string, unknown> };
  const { $enc: after } = moved as { $enc: Record<string, unknown> };
  for (const field of ['nonce_b64', 'ct_b64', 'dek_wrap_nonce_b64', 'dek_wrapped_b64'])
    assert.notEqual(after[field], before[field], field);
  const record = (await recordsOf('reseal')).at(-1);
  assert.deepEqual(
    [record?.user.username, record?.objectRef?.name, record?.annotations?.['colonnade/to-0']],
    [BOOTSTRAP_SUB, 'db', aadOf(base)],
  );
});

test('a stolen credential of pillar-api moves nothing without a grant, nor with one for something else', async () => {
  const enc = await seal(own, SECRET);
  const move = { from: own, to: base, enc };
  await rejects(api.request(kmsReseal, { grant: 'x.y.z', items: [move] }, call()), 'unauthorized');
  const others = {
    'another place to go': [{ ...move, to: shared }],
    'the way back': [{ ...move, from: base, to: own }],
    'a longer list': [move, move],
    'another sealed value': [{ ...move, enc: await seal(own, SECRET) }],
  };
  for (const [label, grantFor] of Object.entries(others))
    await assert.rejects(reseal([move], { grantFor }), { code: 'unauthorized' }, label);
  const res = grantResource(kmsReseal, { items: [move] });
  const revealing = await signGrant(kms.admin.token, { sub: BOOTSTRAP_SUB, act: 'reveal', res });
  await rejects(api.request(kmsReseal, { grant: revealing, items: [move] }, call()), 'unauthorized');
  const once = await kms.granted(kmsReseal, { items: [move] });
  await api.request(kmsReseal, once, call());
  await rejects(api.request(kmsReseal, once, call()), 'unauthorized');
  assert.ok((await recordsOf('reseal', true)).length >= 7);
});

test('a user who may not read secrets moves none, also one who may administer', async () => {
  const { token, id } = makeApiToken();
  const grant_key_hex = deriveGrantKey(token).toString('hex');
  const reader = { token_id: id, sub: 'ann', rights: ['admin' as const], grant_key_hex, expires_at_ms: null };
  await api.request(kmsPutReader, await kms.granted(kmsPutReader, reader), call());
  const move = { from: own, to: base, enc: await seal(own, SECRET) };
  await rejects(reseal([move], { token, sub: 'ann' }), 'forbidden');
});

test('in a batch each bad item has its own error, and one that is too large is refused whole', async () => {
  const enc = await seal(own, SECRET);
  const done = await reseal([
    { from: own, to: base, enc },
    { from: base, to: own, enc },
    { from: own, to: { ...base, pillarenv: 'prod' }, enc },
    { from: own, to: { ...base, name: '_errors' }, enc },
    { from: { ...own, tgt_type: 'root' }, to: base, enc },
    { from: own, to: base, enc: 'plain' },
    { from: own, to: shared, enc },
  ]);
  assert.deepEqual(
    done.map((item) => (item.ok ? 'ok' : item.error.code)),
    ['ok', 'decrypt_failed', 'bad_request', 'bad_request', 'bad_request', 'value_invalid', 'ok'],
  );
  const large = await seal(own, 'x'.repeat(250 * 1024));
  const items = Array.from({ length: 10 }, () => ({ from: own, to: base, enc: large }));
  await rejects(reseal(items), 'too_large');
});

test('a check says of each kept value whether it opens in its place, and gives nothing away', async () => {
  const enc = (await seal(own, SECRET)) as { $enc: { [key: string]: Value } };
  const old = { $enc: { ...enc.$enc, kid: 'old' } };
  const items = [
    { context: own, enc },
    { context: base, enc },
    { context: own, enc: old },
    { context: own, enc: 'plain' },
  ];
  const answer = await api.request(kmsCheck, { items }, call());
  assert.deepEqual(
    answer.items.map((item) => (item.ok ? { ...item.result } : item.error.code)),
    [{}, 'decrypt_failed', 'kid_unknown', 'value_invalid'],
  );
});

test('neither log nor record holds the plaintext', async () => {
  assert.ok(!kms.logLines.join('').includes('hunter2'));
  const records = (await kms.records()).map((record) => encodeText(zAuditEvent, record)).join('');
  assert.ok(!records.includes('hunter2'));
});
