import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createSecretKey, randomBytes, randomInt } from 'node:crypto';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  ColonnadeError,
  collectionTarget,
  encodeTree,
  minionTarget,
  type OpenContext,
  pillarAad,
  type ResolvedTarget,
  rootTarget,
  taskEnv,
  taskTemplateEnv,
  zEnc,
} from '@colonnade/contracts';
import { canonicalText, parseValue, type Value, type ValueObject } from '@colonnade/value';
import { arbitraryValue } from '@colonnade/value/testing';
import fc from 'fast-check';
import { openValue, sealValue } from '../../../services/crypto-kms/src/envelope.ts';
import { fixedKeys } from '../../../services/crypto-kms/src/kek.ts';
import { ensureVenv } from '../../support/python.ts';

const SCRIPT = fileURLToPath(new URL('enc.py', import.meta.url));
const COUNT = 10_000;
const KID = 'core-kek-v1';

// COLONNADE_TEST_SEED repeats a run's values; nonces and keys are fresh each time.
const seed = Number(process.env.COLONNADE_TEST_SEED ?? randomInt(2 ** 31));
const key = randomBytes(32);
const keys = fixedKeys({ kid: KID, key: createSecretKey(key) });

let python: string;
before(async () => {
  python = await ensureVenv('cryptography', ['cryptography==48.0.0']);
});

describe(`$enc and Python's cryptography, seed ${seed}`, () => {
  const values = fc.sample(arbitraryValue(), { numRuns: COUNT, seed });
  const contexts = fc.sample(arbitraryContext(), { numRuns: COUNT, seed });

  test(`${COUNT} values sealed by Python open here`, () => {
    const sealed = runPython('seal', (at) => ({
      context: contexts[at] as OpenContext,
      value: values[at] as Value,
    }));
    for (const [at, line] of sealed.entries()) {
      const opened = openValue(keys, aadOf(contexts[at] as OpenContext), parseValue(line));
      assert.equal(canonicalText(opened), canonicalText(values[at] as Value), `value ${at}`);
    }
  });

  test(`${COUNT} values sealed here open in Python, byte for byte`, () => {
    const opened = runPython('open', (at) => ({ context: contexts[at] as OpenContext, enc: sealHere(at) }));
    for (const [at, line] of opened.entries())
      assert.equal(line, canonicalText(values[at] as Value), `value ${at}`);
  });

  test('both refuse what is bound to another context or was touched', () => {
    const changed = runPython('open', (at) => breakOne(at, sealHere(at)), 400);
    assert.deepEqual(new Set(changed), new Set(['!InvalidTag']));
    for (let at = 0; at < 400; at += 1) {
      const { context, enc } = breakOne(at, sealHere(at));
      assert.throws(
        () => openValue(keys, aadOf(context), enc),
        (thrown) => thrown instanceof ColonnadeError && thrown.code === 'decrypt_failed',
      );
    }
  });

  function sealHere(at: number): Value {
    return encodeTree(zEnc, sealValue(keys, aadOf(contexts[at] as OpenContext), values[at] as Value));
  }

  /** One thing of a sealed value or its context is not what it was. */
  function breakOne(at: number, enc: Value): { context: OpenContext; enc: Value } {
    const context = contexts[at] as OpenContext;
    const fields = ['nonce_b64', 'ct_b64', 'dek_wrap_nonce_b64', 'dek_wrapped_b64'] as const;
    const field = fields[at % 5];
    if (field === undefined) return { context: { ...context, name: `${context.name}x` }, enc };
    const inner = (enc as ValueObject).$enc as ValueObject;
    const bytes = Buffer.from(inner[field] as string, 'base64');
    const index = at % bytes.length;
    bytes[index] = (bytes[index] as number) ^ (1 << (at % 8));
    return { context, enc: { $enc: { ...inner, [field]: bytes.toString('base64') } } };
  }
});

function aadOf(c: OpenContext): string {
  return pillarAad({ tgtType: c.tgt_type, tgtId: c.tgt_id, pillarenv: c.pillarenv, name: c.name });
}

/** Every kind of target, with ids and names in any script. */
function arbitraryContext(): fc.Arbitrary<OpenContext> {
  const id = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
    .map((s) => s.replace(/[:;,/\\\s]/gu, '_'));
  const target: fc.Arbitrary<ResolvedTarget> = fc.oneof(
    fc.constant(rootTarget),
    fc.tuple(id, id).map(([minion, master]) => minionTarget(minion, master)),
    fc.tuple(id, id).map(([collection, owner]) => collectionTarget(collection, owner)),
    id.map((tgtId) => ({ tgtType: 'task', tgtId, pillarenv: taskEnv(tgtId) }) as const),
    fc
      .tuple(id, id)
      .map(
        ([tgtId, sub]) => ({ tgtType: 'task_tpl', tgtId, pillarenv: taskTemplateEnv(tgtId, sub) }) as const,
      ),
  );
  const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 });
  return fc
    .tuple(target, name)
    .map(([t, n]) => ({ tgt_type: t.tgtType, tgt_id: t.tgtId, pillarenv: t.pillarenv, name: n }));
}

function runPython(mode: 'seal' | 'open', message: (at: number) => ValueObject, count = COUNT): string[] {
  const input = Array.from({ length: count }, (_, at) => `${canonicalText(message(at))}\n`).join('');
  // -I: nothing of the environment or the folder changes what Python does.
  const result = spawnSync(python, ['-I', SCRIPT, mode, key.toString('base64'), KID], {
    input,
    maxBuffer: 2 ** 28,
  });
  assert.ifError(result.error);
  assert.equal(result.status, 0, result.stderr.toString('utf8'));
  const lines = result.stdout.toString('utf8').split('\n').slice(0, -1);
  assert.equal(lines.length, count);
  return lines;
}
