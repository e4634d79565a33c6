import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { ColonnadeError } from '@colonnade/contracts';
import fc from 'fast-check';

/** A failed property names its seed; FUZZ_SEED runs the same cases again. */
const SEED = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31));
/** No answer to a mutant may take longer, on a machine that does other things too; milliseconds. */
const SLOWEST_MS = 5000;

/** How a property is run: so many cases, or as many as the time allows where the machine is slow. */
export function fuzzRuns(numRuns: number, limitMs = 15_000) {
  return { seed: SEED, numRuns, interruptAfterTimeLimit: limitMs };
}

/** Names every object has, and texts that parsers stumble over. */
export const ODD_TEXTS = [
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'null', 'undefined', 'NaN', '{}', '[]', '""'],
  ...['', ' ', '\n', '\r\n', '\t', '\u0000', '\ufeff', '\u202e', '\ud800', 'İ', 'ﬀ', '𐀀', 'é', '\u0301'],
  ...['=', '==', '+', '/', '-', '_', '.', '..', '../', '%00', '%2e', '\\', '"', "'", ';', ':', 'e30', 'AAAA'],
];

type Change = (text: string) => string;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const STANDARD = ALPHABET.replace('-_', '+/');

/**
 * What becomes of a text in hands that mean ill, or in none at all: bits, characters, parts, length, spelling.
 * @param others whose parts may come in
 */
export function textChanges(others: readonly string[]): fc.Arbitrary<Change> {
  const place = fc.nat();
  const odd = fc.constantFrom(...ODD_TEXTS);
  const insert = fc.oneof(
    odd,
    fc.string({ unit: 'binary', maxLength: 6 }),
    fc.base64String({ maxLength: 8 }),
  );
  const length = fc.constantFrom(1, 2, 3, 4, 1000, 60_000);
  return fc.oneof(
    fc.tuple(place, fc.nat(7)).map(([p, bit]) => changeAt(p, (c) => c ^ (1 << bit))),
    fc.tuple(place, fc.nat(12), insert).map(([p, drop, text]) => splice(p, drop, text)),
    place.map(
      (p): Change =>
        (text) =>
          text.slice(0, p % (text.length + 1)),
    ),
    place.map(
      (p): Change =>
        (text) =>
          text.slice(p % (text.length + 1)),
    ),
    fc.constantFrom('', '.', ',', ' ', '\n').map(
      (between): Change =>
        (text) =>
          text + between + text,
    ),
    fc.tuple(fc.constantFrom('A', '=', '.', '\u0000', '𐀀'), length).map(
      ([c, n]) =>
        (text: string) =>
          text + c.repeat(n),
    ),
    fc.tuple(fc.constantFrom(...others), place, place).map(([other, i, j]) => swapPart(other, i, j)),
    fc.tuple(odd, place).map(([text, i]) => swapPart(text, i, 0)),
    place.map((i) => changePart(i, (part) => spellAnew(part, i))),
    fc.constantFrom<Change[]>(
      (text) => text.toUpperCase(),
      (text) => text.toLowerCase(),
      (text) => encodeURIComponent(text.toWellFormed()),
      (text) => JSON.stringify(text),
      (text) => text.split('.').toReversed().join('.'),
      (text) => text.replaceAll('-', '+').replaceAll('_', '/'),
      (text) => text.replaceAll('+', '-').replaceAll('/', '_'),
      (text) => text.replaceAll('=', ''),
      (text) => text.replace(/(.{20})/gu, '$1\n'),
      (text) => Buffer.from(text).toString('base64'),
      () => '',
    ),
  );
}

/** Genuine texts after one to three of these changes; some may be genuine again. */
export function mutantsOf(genuine: readonly string[]): fc.Arbitrary<string> {
  return fc
    .tuple(fc.constantFrom(...genuine), fc.array(textChanges(genuine), { minLength: 1, maxLength: 3 }))
    .map(([text, changes]) => changes.reduce((now, change) => change(now), text));
}

/** Any JSON, and the values programs mistake for others. */
export function anyJson(): fc.Arbitrary<unknown> {
  return fc.oneof(
    fc.jsonValue(),
    fc.constantFrom<unknown>(...ODD_TEXTS, 0, -1, 1, 2 ** 53, 1e308, true, null, [], {}),
  );
}

/**
 * Asserts that what was asked with a mutant is refused: with one of these codes, in time, and in words that hold nothing of what is secret.
 */
export async function assertRefused(
  ask: () => unknown,
  { codes, secrets }: { codes: readonly string[]; secrets: readonly string[] },
): Promise<void> {
  const startedMs = performance.now();
  const outcome: unknown = await Promise.resolve()
    .then(ask)
    .then(
      () => 'it was let through',
      (thrown: unknown) => thrown,
    );
  const tookMs = performance.now() - startedMs;
  assert.ok(outcome instanceof ColonnadeError, String(outcome));
  assert.ok(
    codes.includes(outcome.code),
    `${outcome.code}: ${outcome.message} ${String(outcome.cause ?? '')}`,
  );
  assert.ok(tookMs < SLOWEST_MS, `${tookMs} ms`);
  assertTellsNothing(outcome.message, secrets);
}

/**
 * Asserts that whoever has no key makes no token of those there are: each mutant is `unauthorized`, whatever was let in before.
 * @param genuine tokens; a mutant that is one of them again is not asked with
 */
export function assertMutantsRefused(
  genuine: readonly string[],
  use: (token: string) => Promise<unknown>,
  runs = 2500,
): Promise<void> {
  const refusal = { codes: ['unauthorized'], secrets: genuine };
  const property = fc.asyncProperty(mutantsOf(genuine), async (token) => {
    if (!genuine.includes(token)) await assertRefused(() => use(token), refusal);
  });
  return fc.assert(property, fuzzRuns(runs));
}

/** Asserts that none of the secrets' parts stands in a text. */
export function assertTellsNothing(text: string, secrets: readonly string[]): void {
  for (const part of secrets.flatMap((secret) => secret.split('.')))
    assert.ok(part.length < 8 || !text.includes(part), 'the answer holds a part of what is secret');
}

function changeAt(place: number, how: (code: number) => number): Change {
  return (text) => {
    const at = place % Math.max(1, text.length);
    return text.slice(0, at) + String.fromCharCode(how(text.charCodeAt(at) || 0)) + text.slice(at + 1);
  };
}

function splice(place: number, drop: number, insert: string): Change {
  return (text) => {
    const at = place % (text.length + 1);
    return text.slice(0, at) + insert + text.slice(at + drop);
  };
}

/** Parts are what stands between dots, or between low lines where there is no dot. */
function changePart(place: number, how: (part: string) => string): Change {
  return (text) => {
    const between = text.includes('.') ? '.' : '_';
    const parts = text.split(between);
    const at = place % parts.length;
    return parts.map((part, i) => (i === at ? how(part) : part)).join(between);
  };
}

function swapPart(other: string, place: number, from: number): Change {
  const parts = other.split(other.includes('.') ? '.' : '_');
  return changePart(place, () => parts[from % parts.length] ?? '');
}

/** Base64 of the same bytes, in another spelling: stray bits behind the last one, padding, blanks. */
function spellAnew(part: string, place: number): string {
  const last = part.at(-1) ?? '';
  const alphabet = ALPHABET.includes(last) ? ALPHABET : STANDARD;
  const stray = alphabet[alphabet.indexOf(last) ^ ((place % 3) + 1)] ?? last;
  const spellings = [
    `${part.slice(0, -1)}${stray}`,
    `${part}=`,
    `${part}==`,
    `${part.slice(0, 4)}\n${part.slice(4)}`,
  ];
  return spellings[place % spellings.length] as string;
}
