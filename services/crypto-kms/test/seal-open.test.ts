import assert from 'node:assert/strict';
import { createSecretKey } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import {
  BOOTSTRAP_SUB,
  collectionTarget,
  encodeText,
  encodeTree,
  kmsIssueMaster,
  kmsOpenForApi,
  kmsOpenForMerger,
  kmsSeal,
  kmsVerifyForApi,
  minionTarget,
  type OpenContext,
  pillarAad,
  type ResolvedTarget,
  rootTarget,
  zAuditEvent,
  zEnc,
} from '@colonnade/contracts';
import { fromPlain, type Value, valuesEqual } from '@colonnade/value';
import { sealValue } from '../src/envelope.ts';
import { call, KEK_B64, type PreparedKms, prepareKms, rejects } from './support.ts';

let kms: PreparedKms;
let api: Bus;
let merger: Bus;
let token: string;

before(async () => {
  kms = await prepareKms();
  await kms.start();
  api = await kms.bus.as('pillar-api');
  merger = await kms.bus.as('pillar-merger');
  token = await issueToken('m1');
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

async function issueToken(master: string): Promise<string> {
  const asked = await kms.granted(kmsIssueMaster, { master, lifetime_s: 3600 });
  return (await api.request(kmsIssueMaster, asked, call())).token;
}

async function seal(context: OpenContext, value: Value): Promise<Value> {
  const { items } = await api.request(kmsSeal, { items: [{ context, value }] }, call());
  const [item] = items;
  assert.ok(item?.ok, JSON.stringify(item));
  return encodeTree(zEnc, item.result);
}

async function open(
  items: { context: OpenContext; enc: Value }[],
  over: { token?: string; master?: string; minion_id?: string } = {},
) {
  const request = { token, master: 'm1', minion_id: 'web1', items, ...over };
  return (await merger.request(kmsOpenForMerger, request, call())).items.map((item) =>
    item.ok ? item.result : item.error.code,
  );
}

/** Records of this verb, or of failures of it. */
const recordsOf = async (verb: string, failed = false) =>
  (await kms.records()).filter((r) => r.verb === verb && (r.responseStatus?.status === 'Failure') === failed);

const SECRET = fromPlain({ password: 'hunter2', port: 5432, ratio: 0.5 });
const own = contextOf(minionTarget('web1', 'm1'), 'db');
const base = contextOf(rootTarget, 'db');
const shared = contextOf(collectionTarget('c1', 'alice'), 'db');

test('what was sealed opens for the merge of its master and minion', async () => {
  const items = [];
  for (const context of [own, base, shared]) items.push({ context, enc: await seal(context, SECRET) });
  const opened = await open(items);
  assert.equal(opened.length, 3);
  for (const value of opened) assert.ok(valuesEqual(value, SECRET));
});

test('in a batch, each bad item has its own error and the good ones open', async () => {
  const enc = (await seal(own, SECRET)) as { $enc: { [key: string]: Value } };
  const change = (fields: { [key: string]: Value }) => ({ $enc: { ...enc.$enc, ...fields } });
  const template: OpenContext = {
    tgt_type: 'task_tpl',
    tgt_id: 't1',
    pillarenv: 'task_tpl:t1;user:alice',
    name: 'db',
  };
  const opened = await open([
    { context: own, enc },
    { context: contextOf(minionTarget('web2', 'm1'), 'db'), enc },
    { context: contextOf(minionTarget('web1', 'm2'), 'db'), enc },
    { context: template, enc },
    { context: own, enc: 'plain' },
    { context: own, enc: change({ v: 2n }) },
    { context: own, enc: change({ kid: 'old' }) },
    { context: own, enc: change({ extra: 1n }) },
    { context: { ...own, name: 'other' }, enc },
    { context: own, enc },
  ]);
  assert.deepEqual(opened.slice(1, -1), [
    'kms_refused',
    'kms_refused',
    'kms_refused',
    'value_invalid',
    'value_invalid',
    'kid_unknown',
    'value_invalid',
    'decrypt_failed',
  ]);
  for (const at of [0, -1]) assert.ok(valuesEqual(opened.at(at) ?? null, SECRET));
});

test('a refused scope is on record before the answer, with what was tried', async () => {
  const enc = await seal(own, SECRET);
  await open([{ context: contextOf(minionTarget('web2', 'm1'), 'db'), enc }]);
  const record = (await recordsOf('open', true)).at(-1);
  assert.equal(record?.responseStatus?.reason, 'kms_refused');
  assert.equal(record?.annotations?.['colonnade/refused-0'], 'minion:web2:minion_id:web2;master:m1:db');
  assert.equal(record?.user.username, 'master:m1');
});

test("the master's token decides, not what the request says", async () => {
  const enc = await seal(own, SECRET);
  const before = (await recordsOf('open', true)).length;
  await rejects(open([{ context: own, enc }], { token: 'x.y.z' }), 'unauthorized');
  await rejects(open([{ context: own, enc }], { token: await issueToken('m2') }), 'unauthorized');
  await rejects(open([{ context: own, enc }], { token: `${token}${token}` }), 'unauthorized');
  const refusals = (await recordsOf('open', true)).slice(before);
  assert.deepEqual(
    refusals.map((r) => [r.user.username, r.responseStatus?.code]),
    Array(3).fill(['system:anonymous', 401]),
  );
});

describe('sealing refuses one by one', () => {
  const deep = Array.from({ length: 40 }).reduce<Value>((inner) => [inner], null);
  const table: [string, OpenContext, Value, string][] = [
    ['a root pillar outside base', { ...base, pillarenv: 'prod' }, 1n, 'bad_request'],
    ['another tgt_id for root', { ...base, tgt_id: 'x' }, 1n, 'bad_request'],
    ['a minion that is not in its pillarenv', { ...own, tgt_id: 'web2' }, 1n, 'bad_request'],
    [
      'a separator in an id',
      { ...own, tgt_id: 'a:b', pillarenv: 'minion_id:a:b;master:m1' },
      1n,
      'bad_request',
    ],
    ['a collection without its owner', { ...shared, pillarenv: 'collection:c1' }, 1n, 'bad_request'],
    ['a collection under a task', { ...shared, tgt_type: 'task' }, 1n, 'bad_request'],
    ['a reserved name', { ...base, name: '_errors' }, 1n, 'bad_request'],
    ['a control character in the name', { ...base, name: 'a\u0000' }, 1n, 'bad_request'],
    ['what is sealed already', base, { $enc: {} }, 'value_invalid'],
    ['a marker deeper down', base, { a: [{ $enc: 1n }] }, 'value_invalid'],
    ['a value too deep', base, deep, 'value_invalid'],
    ['a value too large', base, 'x'.repeat(256 * 1024), 'too_large'],
  ];
  for (const [name, context, value, code] of table) {
    test(name, async () => {
      const items = [
        { context: base, value: 1n },
        { context, value },
        { context: own, value: SECRET },
      ];
      const answer = await api.request(kmsSeal, { items }, call());
      assert.deepEqual(
        answer.items.map((item) => (item.ok ? 'ok' : item.error.code)),
        ['ok', code, 'ok'],
      );
    });
  }
  test('the largest value there may be is sealed and opened', async () => {
    const value = 'x'.repeat(256 * 1024 - 2);
    assert.deepEqual(await open([{ context: base, enc: await seal(base, value) }]), [value]);
  });
});

test('a batch beyond the limits is refused whole', async () => {
  const value = 'x'.repeat(250 * 1024);
  const items = Array.from({ length: 10 }, () => ({ context: base, value }));
  await rejects(api.request(kmsSeal, { items }, call()), 'too_large');
  const enc = await seal(base, value);
  await rejects(open(Array.from({ length: 10 }, () => ({ context: base, enc }))), 'too_large');
});

describe('reveal', () => {
  test('needs a grant for exactly this pillar, and is on record', async () => {
    const enc = await seal(own, SECRET);
    const before = (await recordsOf('reveal')).length;
    const asked = await kms.granted(kmsOpenForApi, { context: own, enc });
    const { value } = await api.request(kmsOpenForApi, asked, call());
    assert.ok(valuesEqual(value, SECRET));
    const records = (await recordsOf('reveal')).slice(before);
    assert.equal(records.length, 1);
    assert.deepEqual(
      { ...records[0]?.objectRef },
      { resource: 'pillars', namespace: own.tgt_type, name: 'db', apiGroup: 'colonnade', apiVersion: 'v1' },
    );
    assert.equal(records[0]?.user.username, BOOTSTRAP_SUB);
  });

  test('a grant works once, and for nothing else', async () => {
    const enc = await seal(own, SECRET);
    const asked = { context: own, enc };
    const once = await kms.granted(kmsOpenForApi, asked);
    await api.request(kmsOpenForApi, once, call());
    await rejects(api.request(kmsOpenForApi, once, call()), 'unauthorized');
    for (const { grant } of [
      await kms.granted(kmsOpenForApi, { ...asked, context: base }),
      await kms.granted(kmsOpenForApi, { ...asked, enc: await seal(own, SECRET) }),
      await kms.granted(kmsVerifyForApi, asked),
      await kms.granted(kmsIssueMaster, { master: 'm1', lifetime_s: 60 }),
    ])
      await rejects(api.request(kmsOpenForApi, { ...asked, grant }, call()), 'unauthorized');
    assert.ok((await recordsOf('reveal', true)).length >= 5);
  });

  test('verify says whether it opens and gives nothing away', async () => {
    const enc = await seal(own, SECRET);
    const verify = async (context: OpenContext, value: Value) =>
      api.request(kmsVerifyForApi, await kms.granted(kmsVerifyForApi, { context, enc: value }), call());
    assert.deepEqual({ ...(await verify(own, enc)) }, {});
    await rejects(verify(base, enc), 'decrypt_failed');
    await rejects(verify(own, { $enc: null }), 'value_invalid');
    await rejects(verify({ ...own, tgt_type: 'root' }, enc), 'bad_request');
    assert.equal((await recordsOf('verify')).length, 1);
    assert.equal((await recordsOf('verify', true)).length, 3);
  });

  test('opens a record from before our rules, with another form of tgt_id', async () => {
    const old: OpenContext = { ...own, tgt_id: '65f0c0ffee', name: ' name:with:anything ' };
    const kek = { kid: 'core-kek-v1', key: createSecretKey(KEK_B64, 'base64') };
    const enc = encodeTree(zEnc, sealValue({ active: () => kek }, aadOf(old), SECRET));
    const asked = await kms.granted(kmsOpenForApi, { context: old, enc });
    assert.ok(valuesEqual((await api.request(kmsOpenForApi, asked, call())).value, SECRET));
    for (const value of await open([{ context: old, enc }])) assert.ok(valuesEqual(value, SECRET));
    assert.deepEqual(await open([{ context: { ...old, tgt_id: 'a:b' }, enc }]), ['kms_refused']);
  });
});

test('neither log nor record ever holds the plaintext', async () => {
  assert.ok(kms.logLines.length > 0);
  assert.ok(!kms.logLines.join('').includes('hunter2'));
  const records = (await kms.records()).map((record) => encodeText(zAuditEvent, record)).join('');
  assert.ok(!records.includes('hunter2') && !records.includes(token));
});
