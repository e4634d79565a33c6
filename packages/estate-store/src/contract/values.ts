import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalText, parseValue, type Value } from '@colonnade/value';
import * as h from './harness.ts';

/** As JSON text, so that the kinds are plain to see. */
const TEXTS = [
  'null',
  'true',
  'false',
  '""',
  '0',
  '1',
  '-1',
  '1.0',
  '-0.0',
  '0.0',
  '9007199254740993',
  '9223372036854775807',
  '-9223372036854775808',
  '1e+16',
  '1e-07',
  '5e-324',
  '1.7976931348623157e+308',
  '0.1',
  '"\\u0000\\u001f\\u007f"',
  '"\\ud83e\\udd8a 漢字 \\u2028 ё"',
  '[]',
  '{}',
  '[[],{},[null]]',
  '{"__proto__":{"a":1},"constructor":2,"toString":3.0}',
  '{"\\ud83e\\udd8a":1,"\\uffff":2,"":3}',
  `${'['.repeat(40)}1.0${']'.repeat(40)}`,
  `"${'long '.repeat(50_000)}"`,
];

export function testValues(create: h.CreateHarness): void {
  test('values keep their kind and every digit, in pillars, versions, snapshots and events', async () => {
    await h.withStore(create, async (store, harness) => {
      const values = TEXTS.map((text): Value => parseValue(text));
      const pid = (i: number) => `p${i}`;
      for (const [i, value] of values.entries()) {
        const idempotency = {
          scope: pid(i),
          fingerprint: 'f',
          response: value,
          expiresAtMs: Date.now() + 60_000,
        };
        const events = [{ type: 't', subject: 's', data: value }];
        await store.write(
          h.batch([h.createPillar(pid(i), { value, pillarenv: pid(i) })], events, { idempotency }),
        );
      }
      await using reopened = await harness.openStore();
      await using reader = await harness.openReader();
      const outbox = await reopened.readOutbox(100);
      const { scopes } = await h.look(reader, { scopes: values.map((_, i) => pid(i)) });
      for (const [i, value] of values.entries()) {
        const places = [
          (await reopened.getPillar(pid(i)))?.value,
          (await reopened.listVersions(pid(i)))[0]?.value,
          scopes.get(pid(i))?.[0]?.value,
          outbox[i]?.data,
          (await reopened.findIdempotent(pid(i)))?.response,
        ];
        for (const found of places) {
          assert.deepStrictEqual(found, value);
          assert.equal(canonicalText(found as Value), canonicalText(value));
        }
      }
    });
  });

  test('names and ids of any script come back unchanged, and differ when their bytes do', async () => {
    await h.withStore(create, async (store) => {
      const names = ['é', 'e\u0301', 'É', 'ё', '漢字', '🦊', 'a b', "'", '"', '%', '_', '\\', ' '];
      await h.writeTick(
        store,
        ...names.map((name, i) => h.createPillar(`p${i}`, { name, value: BigInt(i) })),
      );
      for (const [i, name] of names.entries()) {
        const found = await store.findPillar('root', 'root', name, 'base');
        assert.equal(found?.pid, `p${i}`);
        assert.equal(found?.name, name);
      }
    });
  });
}
