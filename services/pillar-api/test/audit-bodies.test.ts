import assert from 'node:assert/strict';
import { test } from 'node:test';
import { secretFields, zProblem } from '@colonnade/contracts';
import { z } from 'zod';
import { allRoutes } from '../src/routes/index.ts';

/**
 * Fields of bodies that hold whatever somebody puts there, and are recorded at Request and RequestResponse: none of them is where a
 * secret belongs. A new one has to be marked as secret, or listed here with the reason.
 */
const OPEN: Readonly<Record<string, string>> = {
  schema: "a template's schema is shown to everybody who may read",
  properties: 'what a minion tells of itself is shown to everybody who may read',
  rule: 'a rule over inventories',
  values: 'what a rule compares with',
  value: 'the same; of an explanation the merger masks what is a secret',
  before: 'of a diff, which leaves out what is a secret',
  after: 'of a diff, which leaves out what is a secret',
  parameters: 'what a hook run by hand is told: what was done',
  environment: 'the same with what the runner adds, which hides what its own environment gives',
};

type Found = { open: string[]; secret: string[] };

/** Every field of any form under a schema, by its name. */
function look(schema: z.ZodType, name: string, found: Found, seen = new Set<z.ZodType>()): void {
  if (secretFields.get(schema) !== undefined) return void found.secret.push(name);
  if (seen.has(schema)) return;
  seen.add(schema);
  const on = (inner: unknown, as = name) => look(inner as z.ZodType, as, found, seen);
  if (schema instanceof z.ZodObject) {
    for (const [key, field] of Object.entries(schema.shape))
      look(field as z.ZodType, key, found, new Set(seen));
  } else if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) on(schema.unwrap());
  else if (schema instanceof z.ZodArray) on(schema.element);
  else if (schema instanceof z.ZodUnion) for (const option of schema.options) on(option);
  else if (schema instanceof z.ZodCustom || schema instanceof z.ZodRecord) {
    if (!isCount(schema)) found.open.push(name);
  } else
    assert.ok(
      LEAVES.some((kind) => schema instanceof kind),
      `${name}: ${schema.constructor.name}`,
    );
}

/** Numbers by name. */
function isCount(schema: z.ZodType): boolean {
  return schema instanceof z.ZodRecord && schema.valueType instanceof z.ZodPipe;
}

const LEAVES = [z.ZodString, z.ZodStringFormat, z.ZodBoolean, z.ZodEnum, z.ZodLiteral, z.ZodPipe, z.ZodNull];

test('whatever a body may hold that has no form of its own is a secret, or said to be none', () => {
  const open = new Set<string>();
  let secrets = 0;
  for (const { method, url, audit } of allRoutes({} as never)) {
    const found: Found = { open: [], secret: [] };
    for (const schema of [audit.request, audit.response]) if (schema !== undefined) look(schema, '', found);
    for (const name of found.open) {
      assert.ok(Object.hasOwn(OPEN, name), `${method} ${url}: who may put what into "${name}"?`);
      open.add(name);
    }
    secrets += found.secret.length;
  }
  assert.deepEqual([...open].toSorted(), Object.keys(OPEN).toSorted());
  assert.ok(secrets > 30, `${secrets}`);
});

test('of a refusal only what somebody else wrote has no form', () => {
  const found: Found = { open: [], secret: [] };
  look(zProblem, '', found);
  assert.deepEqual(found, { open: [], secret: ['said'] });
});
