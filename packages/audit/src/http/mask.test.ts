import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  secretField,
  zDefaultsPut,
  zExplained,
  zHookTried,
  zMasterCreated,
  zPillarCreate,
  zPillarPage,
  zPillarReveal,
  zPillarSearch,
  zPillarUnsealed,
  zPillarUpdate,
  zPillarVersions,
  zProblem,
  zTaskCreate,
  zTokenCreated,
  zValue,
} from '@colonnade/contracts';
import { canonicalText, fromPlain, toPlain, type Value } from '@colonnade/value';
import { arbitraryValue } from '@colonnade/value/testing';
import fc from 'fast-check';
import { z } from 'zod';
import { maskBody } from './mask.ts';

const shown = (schema: z.ZodType, body: object, accepted = true) => {
  const masked = maskBody(schema, fromPlain(body), accepted);
  return masked === undefined ? undefined : toPlain(masked);
};
const MASK = '*******';

describe('secrets of our own bodies', () => {
  const create = { tgt_type: 'root', name: 'password', value: 'x' };

  test('a pillar that says it is one; its name says nothing', () => {
    assert.deepEqual(shown(zPillarCreate, { ...create, is_secret: true }), {
      ...create,
      is_secret: true,
      value: MASK,
    });
    assert.deepEqual(shown(zPillarCreate, create), create);
  });

  test('a refused update, which may have been meant for a secret', () => {
    assert.deepEqual(shown(zPillarUpdate, { value: 1 }), { value: 1 });
    assert.deepEqual(shown(zPillarUpdate, { value: 1 }, false), { value: MASK });
  });

  test('whatever else was refused, which may have been meant for a secret that is there', () => {
    assert.deepEqual(shown(zPillarCreate, create, false), { ...create, value: MASK });
    const pillars = [{ name: 'n', value: 'x' }];
    const masked = [{ name: 'n', value: MASK }];
    assert.deepEqual(shown(zDefaultsPut, { pillars }), { pillars });
    assert.deepEqual(shown(zDefaultsPut, { pillars }, false), { pillars: masked });
    assert.deepEqual(shown(zTaskCreate, { tpl_id: 't', pillars }, false), { tpl_id: 't', pillars: masked });
  });

  test('a secret that is none from now on: its record stays as long as the log does', () => {
    const time = '2024-01-01T00:00:00.000Z';
    const view = {
      ...{ pid: 'p', tgt_type: 'root', tgt_id: 'root', pillarenv: 'base', name: 'n', value: 'was secret' },
      ...{ is_secret: false, created_by: 'a', updated_by: 'a', created_at: time, updated_at: time },
      ...{ clock: 1, etag: 'e' },
    };
    assert.deepEqual(shown(zPillarUnsealed, view), { ...view, value: MASK });
  });

  test('what is shown once: revealed values, tokens, passwords', () => {
    assert.deepEqual(shown(zPillarReveal, { pid: 'p', name: 'n', value: { a: 1 }, clock: 1 }), {
      ...{ pid: 'p', name: 'n', value: MASK, clock: 1 },
    });
    const time = '2024-01-01T00:00:00.000Z';
    const token = {
      id: 'i',
      sub: 's',
      roles: ['admin'],
      scoped_roles: [],
      created_at: time,
      expires_at: null,
      last_used_at: null,
      token: 'col_i_SECRET',
    };
    assert.deepEqual(shown(zTokenCreated, token), { ...token, token: MASK });
    const master = {
      ...{ id: 'm', envs: [], on_unknown_minion: 'refuse', token_ids: ['j'], clock: 1, etag: 'e' },
      token: { jti: 'j', token: 'SECRET', expires_at: time },
      bridge: { redis_user: 'u', redis_password: 'SECRET', redis_acl_rules: ['#SECRET'] },
    };
    assert.deepEqual(shown(zMasterCreated, master), {
      ...master,
      token: { ...master.token, token: MASK },
      bridge: { redis_user: 'u', redis_password: MASK, redis_acl_rules: MASK },
    });
  });

  test('rows of a list and of a history, each by its own mark', () => {
    const row = (is_secret: boolean) => ({
      op: 'create',
      ...{ tgt_type: 'root', tgt_id: 'root', pillarenv: 'base' },
      name: 'n',
      value: 'v',
      is_secret,
      purged: false,
      by: 'b',
      at: '2024-01-01T00:00:00.000Z',
      clock: 1,
    });
    const versions = { items: [row(true), row(false)], next_cursor: null };
    const masked = shown(zPillarVersions, versions);
    assert.deepEqual(
      (masked as typeof versions).items.map(({ value }) => value),
      [MASK, 'v'],
    );
    assert.deepEqual(shown(zPillarPage, { items: [], next_cursor: null }), { items: [], next_cursor: null });
  });

  test('a body that is not of its schema is not shown at all', () => {
    for (const body of [{ ...create, is_secret: 'true' }, { ...create, more: 1 }, [create], null as never]) {
      assert.equal(shown(zPillarCreate, body), undefined);
    }
  });
});

test('what stands under free keys, behind a default or in what this does not know is hidden as well', () => {
  const zSecret = z.strictObject({ token: secretField(z.string()), note: z.string() });
  const one = { token: 'hunter2', note: 'n' };
  const hidden = { token: MASK, note: 'n' };
  assert.deepEqual(shown(z.record(z.string(), zSecret), { free: one }), { free: hidden });
  assert.deepEqual(shown(zSecret.default(one).nullable(), one), hidden);
  const zToken = secretField(z.string());
  const wrapped = [z.lazy(() => zToken), zToken.readonly(), zToken.catch(''), zToken.prefault('x')];
  for (const token of [...wrapped, zToken.transform((text) => text), z.preprocess((text) => text, zToken)]) {
    assert.deepEqual(shown(z.strictObject({ token }), { token: 'hunter2' }), { token: MASK });
  }
  assert.deepEqual(shown(z.object({ known: z.string() }), { known: 'k', other: 'hunter2' }), {
    known: 'k',
    other: MASK,
  });
  const zUnknown = z.strictObject({ pair: z.tuple([zSecret]), both: z.intersection(zSecret, zSecret) });
  assert.deepEqual(shown(zUnknown, { pair: [one], both: one }), { pair: MASK, both: MASK });
});

test('what a hook wrote, what is looked for, and what is only supposed', () => {
  const result = { hook: 'h', status: 'ok', reason: 'exit code 0', duration_ms: 1, message: 'hunter2' };
  const tried = {
    ...{ event: 'e', run: 'r', status: 'ok', environment: { A: 'b' }, folder: '/f', not_run: [] },
  };
  assert.deepEqual(shown(zHookTried, { ...tried, results: [result] }), {
    ...tried,
    results: [{ ...result, message: MASK }],
  });
  const problem = { type: 't', title: 't', status: 409, detail: 'd', code: 'conflict', instance: 'i' };
  assert.deepEqual(shown(zProblem, { ...problem, said: 'hunter2' }, false), { ...problem, said: MASK });
  assert.deepEqual(shown(zPillarSearch, { name: 'n', value: 'hunter2' }), { name: 'n', value: MASK });
  const key = (change: object) => ({
    ...{ name: 'n', is_secret: false, value: 'v', overrode: [] },
    winner: { pid: null, tgt_type: 'root', tgt_id: 'root', pillarenv: 'base', ...change },
  });
  const explained = { clock: 1, master: 'm', minion_id: 'i', pillarenv: 'base', scopes: ['base'] };
  const keys = [key({}), key({ change: 0 })];
  assert.deepEqual(shown(zExplained, { ...explained, keys }), {
    ...explained,
    keys: [keys[0], { ...keys[1], value: MASK }],
  });
});

test('a value marked secret is never in the masked body, wherever it stands', () => {
  const zInner = z.strictObject({ open: zValue, closed: secretField(zValue) });
  const zOuter = z.strictObject({
    list: z.array(zInner.nullable()),
    one: zInner.optional(),
    either: z.union([zInner, z.strictObject({ other: secretField(zValue) })]),
  });
  const inner = fc.record({ open: arbitraryValue(), closed: arbitraryValue() });
  const outer = fc.record({
    list: fc.array(fc.option(inner), { maxLength: 3 }),
    one: inner,
    either: fc.oneof(inner, fc.record({ other: arbitraryValue() })),
  });
  fc.assert(
    fc.property(outer, (body) => {
      const marked = mark(body as unknown as Value);
      const masked = maskBody(zOuter, marked, true);
      assert.ok(masked !== undefined);
      const text = canonicalText(masked);
      assert.doesNotMatch(text, /top-secret/u);
      // And nothing else is lost.
      assert.equal(text.split('"open":').length, canonicalText(marked).split('"open":').length);
    }),
    { numRuns: 200 },
  );
});

/** Puts a text to look for into every field that is marked. */
function mark(node: Value): Value {
  if (Array.isArray(node)) return node.map(mark);
  if (typeof node !== 'object' || node === null) return node;
  const entries = Object.entries(node).map(([key, value]) => {
    if (key === 'closed' || key === 'other') return [key, ['top-secret', value]] as const;
    return [key, key === 'open' ? value : mark(value)] as const;
  });
  return Object.assign(Object.create(null), Object.fromEntries(entries));
}
