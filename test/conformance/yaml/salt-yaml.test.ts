import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import path from 'node:path';
import { text as collect } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { canonicalText, ValueError, valueFromSaltYaml, valueToYaml } from '@colonnade/value';
import { arbitraryValue } from '@colonnade/value/testing';
import fc from 'fast-check';
import { ensureVenv, readRequirements } from '../../support/python.ts';
import { mergeDocument, roughDocument, scalarDocument } from './generate.ts';

const SCRIPT = path.join(import.meta.dirname, 'salt_yaml.py');
const REQUIREMENTS = path.join(import.meta.dirname, '..', '..', 'salt');

// COLONNADE_TEST_SEED repeats a run; every failure names its seed.
const seed = Number(process.env.COLONNADE_TEST_SEED ?? randomInt(2 ** 31));

for (const version of ['3006', '3008']) {
  describe(`valueFromSaltYaml and the loader of Salt ${version}, seed ${seed}`, () => {
    test('6,000 scalars, as values, keys, items, aliases and in quotes', () =>
      compare(version, sample(scalarDocument, 6000)));
    test('3,000 documents of anchors, merge keys and keys that meet', () =>
      compare(version, sample(mergeDocument, 3000)));
    test('what is not quite YAML is never read as something else', () =>
      compareRough(version, sample(roughDocument, 3000)));
    test('4,000 values that are written here are the same to Salt', async () => {
      const values = sample(arbitraryValue(), 4000);
      const answers = await askSalt(version, values.map(valueToYaml));
      for (const [index, value] of values.entries()) {
        assert.equal(answers[index], `value ${canonicalText(value)}`, named(valueToYaml(value)));
      }
    });
  });
}

function sample<T>(arbitrary: fc.Arbitrary<T>, numRuns: number): T[] {
  return fc.sample(arbitrary, { numRuns, seed });
}

/** The same value, or a refusal on both sides. */
async function compare(version: string, documents: readonly string[]): Promise<void> {
  const answers = await askSalt(version, documents);
  const told = { value: 0, refused: 0 };
  for (const [index, document] of documents.entries()) {
    const ours = read(document);
    const salts = answers[index] ?? '';
    told[ours.startsWith('value ') ? 'value' : 'refused'] += 1;
    // Named in the README: what the two parsers do not take alike in brackets.
    if (/in brackets/u.test(ours)) continue;
    if (salts.startsWith('value ')) assert.equal(ours, salts, named(document));
    else assert.match(ours, /^refused /u, `${named(document)}: Salt says ${salts}, we ${ours}`);
  }
  // A generator that makes only one kind proves nothing.
  assert.ok(told.value > documents.length / 5 && told.refused > documents.length / 50, JSON.stringify(told));
}

/** Where both read a document, they read the same. The two parsers need not take the same malformed texts. */
async function compareRough(version: string, documents: readonly string[]): Promise<void> {
  const answers = await askSalt(version, documents);
  let both = 0;
  for (const [index, document] of documents.entries()) {
    const ours = read(document);
    const salts = answers[index] ?? '';
    if (salts === 'unfit cycle') assert.match(ours, /^refused /u, named(document));
    if (!ours.startsWith('value ') || !salts.startsWith('value ')) continue;
    both += 1;
    assert.equal(ours, salts, named(document));
  }
  assert.ok(both > documents.length / 20, `only ${both} documents were read by both`);
}

function read(document: string): string {
  try {
    return `value ${canonicalText(valueFromSaltYaml(document))}`;
  } catch (thrown) {
    if (!(thrown instanceof ValueError)) throw thrown;
    assert.ok(thrown.line !== undefined && thrown.line >= 1, named(document));
    return `refused ${thrown.message}`;
  }
}

async function askSalt(version: string, documents: readonly string[]): Promise<string[]> {
  const python = await ensureVenv(
    `salt-${version}`,
    await readRequirements(path.join(REQUIREMENTS, `requirements-${version}.txt`)),
  );
  const child = spawn(python, ['-I', SCRIPT], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(documents.map((document) => `${JSON.stringify(document)}\n`).join(''));
  const answers = (await collect(child.stdout)).split('\n');
  assert.equal(
    answers.length,
    documents.length + 1,
    `Salt answered ${answers.length - 1} of ${documents.length}`,
  );
  return answers;
}

function named(document: string): string {
  return `seed ${seed}, ${JSON.stringify(document)}`;
}
