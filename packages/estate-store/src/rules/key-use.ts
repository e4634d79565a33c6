import { ColonnadeError, ENC_MARKER } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { Mutation } from '../port.ts';

/** The key a value is sealed under; undefined: it is not sealed. */
export function kidOf(value: Value): string | undefined {
  const enc = asObject(value)?.[ENC_MARKER];
  const kid = enc === undefined ? undefined : asObject(enc)?.kid;
  return typeof kid === 'string' ? kid : undefined;
}

/** The keys under which these mutations bring values in. */
export function kidsOf(mutations: readonly Mutation[]): readonly string[] {
  const kids = new Set<string>();
  for (const mutation of mutations) {
    const kid = kidOf(broughtBy(mutation) ?? null);
    if (kid !== undefined) kids.add(kid);
  }
  return [...kids];
}

/** @throws ColonnadeError `conflict`: sealed under a key that is being given up */
export function refuseClosed(kids: readonly string[], closed: readonly string[]): void {
  const kid = kids.find((one) => closed.includes(one));
  if (kid === undefined) return;
  throw new ColonnadeError('conflict', `the value is sealed under ${kid}, which is given up: seal it again`);
}

/** @throws ColonnadeError `conflict`: it cannot be given up yet */
export function stillUsed(kid: string): ColonnadeError {
  return new ColonnadeError(
    'conflict',
    `values are stored under ${kid}: rewrap them first, and let imports end`,
  );
}

function broughtBy(mutation: Mutation): Value | undefined {
  if (mutation.kind === 'pillar.create' || mutation.kind === 'pillar.restore') return mutation.record.value;
  return mutation.kind === 'pillar.update' || mutation.kind === 'pillar.move' ? mutation.value : undefined;
}

function asObject(value: Value): { [key: string]: Value } | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
}
