import { ColonnadeError, int } from '@colonnade/contracts';
import { z } from 'zod';
import { type KeyState, zKeyName } from './version.ts';

/**
 * What was decided about the versions of a key, one file for each decision, numbered without gaps and never changed. Whoever
 * makes the next number first has decided, so that no two replicas ever undo each other. Times are milliseconds since the epoch.
 */
export const zKeyChange = z.strictObject({
  format: z.literal('colonnade-key-change/1'),
  name: zKeyName,
  number: int({ min: 1 }),
  at_ms: int({ min: 0 }),
  /**
   * `min-version`: older versions open nothing. `destroy`: this one is given up, and gone for good after `erase_after_ms`.
   * `undestroy`: it is kept after all. `erase`: it is gone.
   */
  op: z.enum(['min-version', 'destroy', 'undestroy', 'erase']),
  version: int({ min: 1 }),
  erase_after_ms: int({ min: 0 }).nullable(),
});
export type KeyChange = z.output<typeof zKeyChange>;
export type KeyDecision = Pick<KeyChange, 'op' | 'version' | 'erase_after_ms'>;

/** The end of a version that is given up. */
export type KeyEnd = { destroyedAtMs: number; eraseAfterMs: number; isErased: boolean };
export type KeyRules = { minVersion: number; ends: ReadonlyMap<number, KeyEnd> };

/** What holds after all these decisions, in their order. */
export function rulesOf(changes: readonly KeyChange[]): KeyRules {
  let minVersion = 1;
  const ends = new Map<number, KeyEnd>();
  for (const { op, version, at_ms, erase_after_ms } of changes) {
    const end = ends.get(version);
    if (op === 'min-version') minVersion = version;
    else if (op === 'destroy')
      ends.set(version, { destroyedAtMs: at_ms, eraseAfterMs: erase_after_ms ?? at_ms, isErased: false });
    else if (op === 'undestroy') ends.delete(version);
    else if (end !== undefined) ends.set(version, { ...end, isErased: true });
  }
  return { minVersion, ends };
}

/** What is known of a version when something is decided about it. */
type Known = { state: KeyState | undefined; activeVersion: number; nowMs: number };

/**
 * Lets through only what takes nothing from anyone: no version that seals or will seal is ever barred, and none is given up
 * that may still be asked to open.
 * @throws ColonnadeError `not_found`, `conflict`, `bad_request`
 */
export function checkDecision({ op, version }: KeyDecision, rules: KeyRules, known: Known): void {
  if (known.state === undefined) throw new ColonnadeError('not_found', 'there is no such version of the key');
  const end = rules.ends.get(version);
  switch (op) {
    case 'min-version':
      if (version <= known.activeVersion) return;
      throw new ColonnadeError(
        'bad_request',
        `version ${known.activeVersion} seals: it can be barred when another does`,
        {
          field: 'version',
        },
      );
    case 'destroy':
      if (known.state === 'retired' && version < rules.minVersion) return;
      throw new ColonnadeError(
        'conflict',
        known.state === 'retired'
          ? `version ${version} may still open: raise the least version above it first`
          : `version ${version} is ${known.state}`,
      );
    case 'undestroy':
      if (end !== undefined && !end.isErased && known.nowMs < end.eraseAfterMs) return;
      throw new ColonnadeError(
        'conflict',
        `version ${version} ${end === undefined ? 'is not destroyed' : 'is gone'}`,
      );
    case 'erase':
      if (end !== undefined && !end.isErased && known.nowMs >= end.eraseAfterMs) return;
      throw new ColonnadeError('conflict', `version ${version} is not due to be erased`);
  }
}
