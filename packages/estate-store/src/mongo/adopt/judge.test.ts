import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseValue } from '@colonnade/value';
import { BSON, Decimal128, Double, Int32, ObjectId } from 'mongodb';
import { type ForeignDocument, SEED_FIELDS } from './fields.ts';
import { judge } from './judge.ts';

const ID = new ObjectId('66f000000000000000000001');
const OPTIONS = { fields: SEED_FIELDS, inPlace: true, by: 'adopter', atMs: 7 };
const root = { tgt_type: 'root', tgt_id: 'root', name: 'n', pillarenv: 'base', value: 'x', is_secret: false };
const sealed = {
  $enc: {
    ...{ v: 1, alg: 'A256GCM', kid: 'core-kek-v1', nonce_b64: 'A'.repeat(16), ct_b64: `${'A'.repeat(22)}==` },
    ...{ dek_wrap_alg: 'A256GCM', dek_wrap_nonce_b64: 'A'.repeat(16), dek_wrapped_b64: 'A'.repeat(64) },
  },
};

/** As another program's driver wrote it and ours reads it. */
const judged = (document: object, options = OPTIONS) => {
  const bytes = BSON.serialize({ _id: ID, ...document });
  return judge(BSON.deserialize(bytes, { promoteValues: false }) as ForeignDocument, options);
};

const misfitsOf = (document: object, options = OPTIONS) => {
  const one = judged(document, options);
  return 'record' in one ? [] : one.misfits;
};

test('a document of the seed becomes a pillar with its id, and what is not told comes from the id and the adopter', () => {
  const value = { n: 1, f: new Double(1), $x: { 'a.b': null } };
  const one = judged({ ...root, value, created_by: 'eve' });
  assert.deepEqual('record' in one && one.record, {
    ...{ pid: ID.toHexString(), tgtType: 'root', tgtId: 'root', name: 'n', pillarenv: 'base', tick: 0 },
    ...{ value: parseValue('{"n":1,"f":1.0,"$x":{"a.b":null}}'), isSecret: false },
    ...{ createdBy: 'eve', updatedBy: 'eve', createdAtMs: 0x66f00000 * 1000, updatedAtMs: 0x66f00000 * 1000 },
  });
  const bare = judged({ ...root, created_by: null });
  assert.equal('record' in bare && bare.record.createdBy, 'adopter');
});

test('every form of the seed fits, and the sealed form as well', () => {
  const forms = [
    root,
    { ...root, tgt_id: 'other' },
    { ...root, tgt_type: 'minion', tgt_id: 'web1', pillarenv: 'minion_id:web1;master:m1' },
    { ...root, tgt_type: 'collection', tgt_id: 'c1', pillarenv: 'collection:c1;user:ada' },
    { ...root, tgt_type: 'task', tgt_id: 't1', pillarenv: 'task:t1' },
    { ...root, tgt_type: 'task_tpl', tgt_id: 't1', pillarenv: 'task_tpl:t1;user:ada' },
    { ...root, value: sealed, is_secret: true },
    { ...root, is_secret: undefined },
    { ...root, created_at: new Date(), updated_at: null, updated_by: 'x' },
  ];
  for (const form of forms) assert.deepEqual(misfitsOf(form), [], JSON.stringify(form));
});

test('what does not fit is told by its reason, all reasons together', () => {
  const minion = { ...root, tgt_type: 'minion', tgt_id: 'web1' };
  const secret = (more: object) => ({
    ...{ ...root, is_secret: true, value: { $enc: { ...sealed.$enc, ...more } } },
  });
  const cases: readonly (readonly [object, readonly string[]])[] = [
    [{ ...root, _id: 5 }, ['pid']],
    [{ ...root, pid: 'theirs' }, ['pid']],
    [{ ...root, tick: 5 }, ['pid']],
    [{ ...root, tgt_type: 'grains' }, ['tgt_type']],
    [{ ...root, tgt_id: null }, ['tgt_id']],
    [{ ...root, tgt_id: 'a:b' }, ['tgt_id']],
    [{ ...root, name: '' }, ['name']],
    [{ ...root, name: '_errors' }, ['name']],
    [{ ...root, pillarenv: 'a,b' }, ['pillarenv']],
    [{ ...minion, pillarenv: 'base' }, ['pillarenv']],
    [{ ...minion, pillarenv: 'minion_id:web2;master:m1' }, ['pillarenv']],
    [{ ...minion, pillarenv: 'minion_id:web1;master:m 1' }, ['pillarenv']],
    [{ ...root, tgt_type: 'collection', tgt_id: 'c1', pillarenv: 'collection:c1' }, ['owner']],
    [{ ...root, is_secret: 1 }, ['is_secret']],
    [{ ...root, created_at: 'yesterday' }, ['origin']],
    [{ ...root, created_by: 5 }, ['origin']],
    [{ ...root, value: new Date() }, ['value_type']],
    [{ ...root, value: Decimal128.fromString('1') }, ['value_type']],
    [{ ...root, value: undefined }, ['value_type']],
    [{ ...root, value: 'x'.repeat(300_000) }, ['value_size']],
    [{ ...root, value: JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`) }, ['value_size']],
    [{ ...root, value: 'plain', is_secret: true }, ['not_sealed']],
    [{ ...root, value: { $enc: { ...sealed.$enc, v: 2 } }, is_secret: true }, ['not_sealed']],
    // What crypto-kms would refuse to open.
    [secret({ nonce_b64: 'AAAA' }), ['not_sealed']],
    [secret({ dek_wrapped_b64: 'AAAA' }), ['not_sealed']],
    [secret({ ct_b64: 'AAAA' }), ['not_sealed']],
    [secret({ ct_b64: `${'A'.repeat(21)}B==` }), ['not_sealed']],
    [secret({ ct_b64: 'A'.repeat(400_000) }), ['value_size']],
    [{ ...root, value: sealed }, ['not_secret']],
    // Ours would be taken for theirs, or theirs for ours.
    [{ ...root, value_json: '2' }, ['reserved']],
    [{ ...root, kid: 'x' }, ['reserved']],
    [{ ...root, of_master: 'm1' }, ['reserved']],
    [{ ...secret({}), kid: 'x' }, ['reserved']],
    [{ ...secret({}), kid: 'core-kek-v1', of_master: null }, []],
    [{ ...root, value: [{ a: sealed }] }, ['not_secret']],
    [{ ...root, name: 5, is_secret: 'yes' }, ['name', 'is_secret']],
  ];
  for (const [document, reasons] of cases) {
    assert.deepEqual(misfitsOf(document), reasons, JSON.stringify(document).slice(0, 200));
  }
});

test('fields of other names are found, and a pid of its own when it is named', () => {
  const { value, ...rest } = root;
  const fields = { ...SEED_FIELDS, value: 'data', pid: 'uid' };
  const one = judged(
    { ...rest, data: value, uid: 'u-1', pid: 5, tick: 5 },
    { ...OPTIONS, fields, inPlace: false },
  );
  assert.deepEqual('record' in one && [one.record.pid, one.record.value], ['u-1', 'x']);
});

test('an id of any type is told so that the document can be found', () => {
  const ids = [new Int32(5), '5', { a: new Int32(1) }, ID].map((_id) => judged({ ...root, _id }).id);
  assert.deepEqual(ids, ['{"$numberInt":"5"}', '5', '{"a":{"$numberInt":"1"}}', ID.toHexString()]);
});
