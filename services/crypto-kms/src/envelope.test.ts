import assert from 'node:assert/strict';
import { createCipheriv, createSecretKey, randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { ColonnadeError, dekWrapAad, encodeTree, zEnc } from '@colonnade/contracts';
import { fromPlain, type Value, valuesEqual } from '@colonnade/value';
import fc from 'fast-check';
import { type Kek, openValue, sealValue } from './envelope.ts';
import { fixedKeys } from './kek.ts';

const kek: Kek = { kid: 'core-kek-v1', key: createSecretKey(randomBytes(32)) };
const keys = fixedKeys(kek);
const AAD = 'minion:web1:minion_id:web1;master:m1:db.password';
const PLAIN: Value = fromPlain({ user: 'app', password: 's3cret', ports: [1, 2], ratio: 1.5 });

type Fields = { [key: string]: Value };

/** A sealed value as it is stored, with its fields changed. */
function sealed(change: (enc: Fields) => void = () => {}, aad = AAD): Value {
  const stored = encodeTree(zEnc, sealValue(keys, aad, PLAIN)) as { $enc: Fields };
  change(stored.$enc);
  return stored;
}

function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (thrown) {
    if (thrown instanceof ColonnadeError) return thrown.code;
    throw thrown;
  }
  return 'ok';
}

const bytesOf = (value: Value | undefined) => Buffer.from(value as string, 'base64');

/** base64 with stray bits behind the last byte: decodes to the same bytes, is another text. */
function withStrayBits(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const at = text.indexOf('=') - 1;
  assert.ok(at > 0, 'needs padding');
  return text.slice(0, at) + alphabet[alphabet.indexOf(text[at] as string) + 1] + text.slice(at + 1);
}

/** What a foreign program might seal: any bytes, under the right keys and contexts. */
function sealRaw(plaintext: Buffer): Value {
  const dek = randomBytes(32);
  const gcm = (key: Parameters<typeof createCipheriv>[1], nonce: Buffer, aad: string, data: Buffer) => {
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(aad));
    return Buffer.concat([cipher.update(data), cipher.final(), cipher.getAuthTag()]).toString('base64');
  };
  const [nonce, wrapNonce] = [randomBytes(12), randomBytes(12)];
  return {
    $enc: {
      v: 1n,
      alg: 'A256GCM',
      kid: kek.kid,
      nonce_b64: nonce.toString('base64'),
      ct_b64: gcm(dek, nonce, AAD, plaintext),
      dek_wrap_alg: 'A256GCM',
      dek_wrap_nonce_b64: wrapNonce.toString('base64'),
      dek_wrapped_b64: gcm(kek.key, wrapNonce, dekWrapAad(kek.kid, AAD), dek),
    },
  };
}

test('opens what it sealed, and never seals twice the same', () => {
  const one = sealed();
  assert.ok(valuesEqual(openValue(keys, AAD, one), PLAIN));
  const [a, b] = [one, sealed()].map((value) => (value as { $enc: Fields }).$enc);
  for (const field of ['nonce_b64', 'ct_b64', 'dek_wrap_nonce_b64', 'dek_wrapped_b64'])
    assert.notEqual(a?.[field], b?.[field]);
});

test('any value opens to itself under its own context, and under no other', () => {
  const scalar = fc.oneof(
    fc.constant(null),
    fc.boolean(),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.string({ unit: 'grapheme' }).filter((s) => s.isWellFormed()),
  );
  const value = fc.letrec<{ value: Value }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      scalar,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(
        fc.string({ unit: 'binary' }).filter((s) => s.isWellFormed()),
        tie('value'),
        { maxKeys: 4, noNullPrototype: false },
      ),
    ),
  })).value;
  fc.assert(
    fc.property(
      value,
      fc.string({ unit: 'binary', minLength: 1 }),
      fc.string({ unit: 'binary', minLength: 1 }),
      (plain, aad, other) => {
        const stored = encodeTree(zEnc, sealValue(keys, aad, plain));
        assert.ok(valuesEqual(openValue(keys, aad, stored), plain));
        if (!Buffer.from(aad).equals(Buffer.from(other)))
          assert.equal(
            codeOf(() => openValue(keys, other, stored)),
            'decrypt_failed',
          );
      },
    ),
    { numRuns: 300 },
  );
});

describe('a context that differs in any part does not open', () => {
  const table: readonly [string, string][] = [
    ['tgt_type', 'root:web1:minion_id:web1;master:m1:db.password'],
    ['tgt_id', 'minion:web2:minion_id:web1;master:m1:db.password'],
    ['minion in pillarenv', 'minion:web1:minion_id:web2;master:m1:db.password'],
    ['master in pillarenv', 'minion:web1:minion_id:web1;master:m2:db.password'],
    ['name', 'minion:web1:minion_id:web1;master:m1:db.passwore'],
    ['name, shorter', 'minion:web1:minion_id:web1;master:m1:db.passwor'],
    ['nothing', ''],
  ];
  for (const [part, aad] of table) {
    test(part, () =>
      assert.equal(
        codeOf(() => openValue(keys, aad, sealed())),
        'decrypt_failed',
      ),
    );
  }
});

describe('each field, broken', () => {
  const edit = (field: string, how: (text: string) => string) => (enc: Fields) => {
    enc[field] = how(enc[field] as string);
  };
  const editBytes = (field: string, how: (bytes: Buffer) => Buffer) =>
    edit(field, (text) => how(bytesOf(text)).toString('base64'));
  const cut = (field: string) => editBytes(field, (bytes) => bytes.subarray(0, -1));
  const grow = (field: string) => editBytes(field, (bytes) => Buffer.concat([bytes, Buffer.of(0)]));
  const flip = (field: string, at: number) =>
    editBytes(
      field,
      (bytes) =>
        bytes.map((byte, index) =>
          index === (at + bytes.length) % bytes.length ? byte ^ 1 : byte,
        ) as Buffer,
    );
  const set = (field: string, value: Value) => (enc: Fields) => {
    enc[field] = value;
  };
  const swap = (a: string, b: string) => (enc: Fields) => {
    Object.assign(enc, { [a]: enc[b], [b]: enc[a] });
  };

  const table: [string, (enc: Fields) => void, string][] = [
    ['v: 2', set('v', 2n), 'value_invalid'],
    ['v: 0', set('v', 0n), 'value_invalid'],
    ['v: a float', set('v', 1), 'value_invalid'],
    ['v: a text', set('v', '1'), 'value_invalid'],
    ['alg: another', set('alg', 'A128GCM'), 'value_invalid'],
    ['alg: null', set('alg', null), 'value_invalid'],
    ['dek_wrap_alg: another', set('dek_wrap_alg', 'A256KW'), 'value_invalid'],
    ['kid: another', set('kid', 'core-kek-v2'), 'kid_unknown'],
    ['kid: empty', set('kid', ''), 'kid_unknown'],
    ['kid: a number', set('kid', 1n), 'value_invalid'],
    ['an unknown field', set('extra', 'x'), 'value_invalid'],
    [
      '__proto__ as a field',
      (enc) => void Object.defineProperty(enc, '__proto__', { value: 'x', enumerable: true }),
      'value_invalid',
    ],
    ['data nonce flipped', flip('nonce_b64', 0), 'decrypt_failed'],
    ['wrap nonce flipped', flip('dek_wrap_nonce_b64', 11), 'decrypt_failed'],
    ['ciphertext flipped', flip('ct_b64', 0), 'decrypt_failed'],
    ['tag flipped', flip('ct_b64', -1), 'decrypt_failed'],
    ['wrapped DEK flipped', flip('dek_wrapped_b64', 0), 'decrypt_failed'],
    ['tag of the wrap flipped', flip('dek_wrapped_b64', -1), 'decrypt_failed'],
    ['ciphertext truncated', cut('ct_b64'), 'decrypt_failed'],
    ['ciphertext extended', grow('ct_b64'), 'decrypt_failed'],
    [
      'ciphertext: the tag alone',
      edit('ct_b64', (text) => bytesOf(text).subarray(-16).toString('base64')),
      'value_invalid',
    ],
    ['nonces swapped', swap('nonce_b64', 'dek_wrap_nonce_b64'), 'decrypt_failed'],
    ['ciphertext and wrapped DEK swapped', swap('ct_b64', 'dek_wrapped_b64'), 'value_invalid'],
    [
      'the wrap of another record',
      (enc) => void Object.assign(enc, pick(sealed(), 'dek_wrapped_b64', 'dek_wrap_nonce_b64')),
      'decrypt_failed',
    ],
    [
      'the data of another record',
      (enc) => void Object.assign(enc, pick(sealed(), 'ct_b64', 'nonce_b64')),
      'decrypt_failed',
    ],
  ];
  for (const field of [
    'v',
    'alg',
    'kid',
    'nonce_b64',
    'ct_b64',
    'dek_wrap_alg',
    'dek_wrap_nonce_b64',
    'dek_wrapped_b64',
  ]) {
    table.push([`${field}: missing`, (enc) => void delete enc[field], 'value_invalid']);
  }
  for (const field of ['nonce_b64', 'dek_wrap_nonce_b64', 'dek_wrapped_b64']) {
    table.push([`${field}: truncated`, cut(field), 'value_invalid']);
    table.push([`${field}: extended`, grow(field), 'value_invalid']);
  }
  for (const field of ['nonce_b64', 'ct_b64', 'dek_wrap_nonce_b64', 'dek_wrapped_b64']) {
    table.push([`${field}: null`, set(field, null), 'value_invalid']);
    table.push([`${field}: empty`, set(field, ''), 'value_invalid']);
    table.push([`${field}: a line break`, edit(field, (text) => `${text}\n`), 'value_invalid']);
    table.push([
      `${field}: a space inside`,
      edit(field, (text) => `${text.slice(0, 4)} ${text.slice(4)}`),
      'value_invalid',
    ]);
    table.push([`${field}: one padding too many`, edit(field, (text) => `${text}=`), 'value_invalid']);
    table.push([`${field}: the URL alphabet`, edit(field, (text) => `-_${text.slice(2)}`), 'value_invalid']);
    table.push([`${field}: no base64`, edit(field, (text) => `*${text.slice(1)}`), 'value_invalid']);
    table.push([
      `${field}: cut in the middle of a group`,
      edit(field, (text) => text.slice(0, -3)),
      'value_invalid',
    ]);
  }
  for (const [name, change, code] of table) {
    test(name, () =>
      assert.equal(
        codeOf(() => openValue(keys, AAD, sealed(change))),
        code,
      ),
    );
  }

  test('padding left out or stray bits behind the last byte', () => {
    const value = encodeTree(zEnc, sealValue(keys, AAD, 'x')) as { $enc: Fields };
    const text = value.$enc.ct_b64 as string;
    assert.ok(text.endsWith('=='), 'three characters of JSON and the tag: 19 bytes');
    for (const broken of [text.replaceAll('=', ''), text.slice(0, -1), withStrayBits(text)]) {
      assert.equal(
        codeOf(() => openValue(keys, AAD, { $enc: { ...value.$enc, ct_b64: broken } })),
        'value_invalid',
      );
    }
  });
});

describe('what is no sealed value', () => {
  const table: [string, Value][] = [
    ['null', null],
    ['a text', 'x'],
    ['a list', [sealed()]],
    ['no marker', {}],
    ['a key beside the marker', { ...(sealed() as Fields), other: 1n }],
    ['$enc: null', { $enc: null }],
    ['$enc: a list', { $enc: [] }],
  ];
  for (const [name, value] of table)
    test(name, () =>
      assert.equal(
        codeOf(() => openValue(keys, AAD, value)),
        'value_invalid',
      ),
    );
});

describe('plaintext that is not a value', () => {
  const table: [string, Buffer][] = [
    ['no JSON', Buffer.from('{')],
    ['two texts', Buffer.from('1 2')],
    ['NaN, as Python may write it', Buffer.from('NaN')],
    ['a duplicate key', Buffer.from('{"a":1,"a":2}')],
    ['past 64 bits', Buffer.from('9223372036854775808')],
    ['invalid UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['far too deep', Buffer.from('['.repeat(200) + ']'.repeat(200))],
  ];
  for (const [name, bytes] of table)
    test(name, () =>
      assert.equal(
        codeOf(() => openValue(keys, AAD, sealRaw(bytes))),
        'decrypt_failed',
      ),
    );
  test('JSON that is not canonical is a value all the same', () => {
    assert.ok(
      valuesEqual(openValue(keys, AAD, sealRaw(Buffer.from(' {"b" : 1, "a": 1.0} '))), { b: 1n, a: 1 }),
    );
  });
});

test('another KEK of the same name does not open it, and no error says why', () => {
  const other: Kek = { kid: kek.kid, key: createSecretKey(randomBytes(32)) };
  for (const open of [
    () => openValue(fixedKeys(other), AAD, sealed()),
    () => openValue(keys, 'x', sealed()),
  ]) {
    assert.throws(
      open,
      (error: Error) => error.message === 'the sealed value does not open here' && error.cause === undefined,
    );
  }
});

function pick(value: Value, ...fields: string[]): Fields {
  const enc = (value as { $enc: Fields }).$enc;
  return Object.fromEntries(fields.map((field) => [field, enc[field] as Value]));
}
