import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { canonicalBytes, canonicalText, parseValue, valuesEqual } from '@colonnade/value';
import { arbitraryValue } from '@colonnade/value/testing';
import fc from 'fast-check';

const SCRIPT = fileURLToPath(new URL('json_dumps.py', import.meta.url));
const COUNT = 12_000;

// COLONNADE_TEST_SEED repeats a run; every failure names its seed.
const seed = Number(process.env.COLONNADE_TEST_SEED ?? randomInt(2 ** 31));

describe(`canonical texts and Python's json.dumps, seed ${seed}`, () => {
  test(`${COUNT} values of ours come back from Python as the same bytes`, () => {
    const values = fc.sample(arbitraryValue(), { numRuns: COUNT, seed });
    const ours = values.map((value) => Buffer.from(canonicalBytes(value)));
    const python = splitLines(runPython(['rewrite'], joinLines(ours)));
    assert.equal(python.length, COUNT, named('lines from Python'));
    for (const [index, line] of python.entries()) {
      assertSameBytes(line, ours[index] as Buffer, index);
      assert.ok(valuesEqual(parseValue(line), values[index] ?? null), named(`value ${index}`));
    }
  });

  test(`${COUNT} values of Python's, in any notation, come out as the bytes of json.dumps`, () => {
    const lines = splitLines(runPython(['generate', String(seed), String(COUNT)]));
    assert.equal(lines.length, 2 * COUNT, named('lines from Python'));
    for (let index = 0; index < COUNT; index++) {
      const notation = lines[2 * index] as Buffer;
      const expected = lines[2 * index + 1] as Buffer;
      assertSameBytes(Buffer.from(canonicalBytes(parseValue(notation))), expected, index);
      assert.equal(canonicalText(parseValue(expected)), expected.toString('utf8'), named(`value ${index}`));
    }
  });

  test('every power of two and of ten is written as Python writes it', () => {
    const floats: number[] = [];
    for (let exponent = -1074; exponent <= 1023; exponent++) floats.push(2 ** exponent, -(2 ** exponent));
    for (let exponent = -323; exponent <= 308; exponent++) {
      floats.push(
        Number(`1e${exponent}`),
        Number(`1.7e${exponent}`),
        Number(`-9.999999999999999e${exponent - 1}`),
      );
    }
    const text = canonicalBytes(floats);
    assertSameBytes(
      runPython(['rewrite'], joinLines([Buffer.from(text)])).subarray(0, -1),
      Buffer.from(text),
      0,
    );
  });
});

function runPython(args: string[], input?: Buffer): Buffer {
  // -I: nothing of the environment or the folder changes what Python does.
  const result = spawnSync('python3', ['-I', SCRIPT, ...args], { input, maxBuffer: 2 ** 28 });
  assert.ifError(result.error);
  assert.equal(result.status, 0, named(`python3: ${result.stderr.toString('utf8')}`));
  return result.stdout;
}

function joinLines(lines: Buffer[]): Buffer {
  return Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]));
}

// By byte: U+2028 and U+0085 in a text end no line here.
function splitLines(output: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < output.length; ) {
    const end = output.indexOf(0x0a, start);
    lines.push(output.subarray(start, end));
    start = end + 1;
  }
  return lines;
}

function assertSameBytes(actual: Buffer, expected: Buffer, index: number): void {
  if (actual.equals(expected)) return;
  assert.equal(actual.toString('utf8'), expected.toString('utf8'), named(`value ${index}`));
}

function named(what: string): string {
  return `${what} (repeat with COLONNADE_TEST_SEED=${seed})`;
}
