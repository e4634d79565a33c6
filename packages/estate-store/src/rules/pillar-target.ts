import {
  ColonnadeError,
  collectionEnv,
  minionEnv,
  parseEnv,
  type ResolvedTarget,
} from '@colonnade/contracts';

/** The record a pillar hangs on, which must be there; a root pillar hangs on none. */
export type NeededTarget =
  | { kind: 'collection'; id: string }
  | { kind: 'minion'; master: string; id: string }
  | { kind: 'task' | 'task_tpl'; id: string };

/**
 * What must be there for a pillar of this target, in the very transaction that creates it: the caller resolved it
 * before, and meanwhile it may have been deleted or handed to another owner.
 * @throws ColonnadeError bad_request for a minion with a pillarenv of something else
 */
export function neededTarget({ tgtType, tgtId, pillarenv }: ResolvedTarget): NeededTarget | undefined {
  if (tgtType === 'root') return undefined;
  if (tgtType !== 'minion') return { kind: tgtType, id: tgtId };
  const env = parseEnv(pillarenv);
  if (env.kind !== 'minion' || pillarenv !== minionEnv(tgtId, env.master)) {
    throw new ColonnadeError('bad_request', 'the pillarenv is not that of the minion', {
      field: 'pillarenv',
    });
  }
  return { kind: 'minion', master: env.master, id: tgtId };
}

/** The master of a minion's pillar; undefined for every other. */
export function masterOf(tgtType: string, tgtId: string, pillarenv: string): string | undefined {
  const prefix = minionEnv(tgtId, '');
  return tgtType === 'minion' && pillarenv.startsWith(prefix) ? pillarenv.slice(prefix.length) : undefined;
}

/** @throws ColonnadeError not_found | conflict (pillarenv of another owner) */
export function checkCollectionTarget(
  { tgtId, pillarenv }: ResolvedTarget,
  found: { owner: string } | undefined,
): void {
  if (found === undefined) throw new ColonnadeError('not_found', 'no such collection', { field: 'tgtId' });
  if (pillarenv === collectionEnv(tgtId, found.owner)) return;
  throw new ColonnadeError('conflict', 'the pillarenv is not that of the collection and its owner');
}

/** @throws ColonnadeError unknown_minion */
export function checkMinionTarget(isThere: boolean): void {
  if (isThere) return;
  throw new ColonnadeError('unknown_minion', 'the master has no such minion', { field: 'tgtId' });
}

/** A pid is its pillar's identity for ever. @throws ColonnadeError conflict */
export function checkPidUnused(isUsed: boolean): void {
  if (isUsed) throw new ColonnadeError('conflict', 'the pid was used before');
}

/** The twin of a new pillar has the same target, name and pillarenv. */
export function twinExists(): ColonnadeError {
  return new ColonnadeError('already_exists', 'the target has a pillar of this name');
}
