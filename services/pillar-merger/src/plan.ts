import { ColonnadeError } from '@colonnade/contracts';
import type { MasterRecord } from '@colonnade/estate-store';
import { findForbiddenEnv, type PillarenvPolicy } from './entitlement.ts';
import type { EstateView } from './estate-view.ts';
import { type Merged, mergeScopes } from './merge.ts';
import { resolveEnvs, scopesToRead } from './resolve.ts';

export type PlanRequest = {
  master: string;
  minionId: string;
  pillarenv: string;
  /** jti of the token the request came with; undefined: asked by a service that has rights of its own. */
  tokenId: string | undefined;
};

/** What one moment of the estate says about a request. */
export type Plan =
  | { kind: 'merged'; envs: readonly string[]; scopes: readonly string[]; merged: Merged }
  | { kind: 'unknown_minion'; onUnknownMinion: MasterRecord['onUnknownMinion'] };

/**
 * Decides and merges, from one consistent view and the time, and nothing else. Secrets stay sealed.
 * @throws ColonnadeError `unknown_master`, `unauthorized` (token not valid any more), `forbidden`, `bad_request`
 */
export function planMerge(
  view: EstateView,
  request: PlanRequest,
  policy: PillarenvPolicy,
  nowMs: number = Date.now(),
): Plan {
  const master = view.master(request.master);
  const minion = view.minion(request.master, request.minionId);
  const tree = view.tree();
  if (master === undefined) throw new ColonnadeError('unknown_master', 'the master is not registered');
  if (request.tokenId !== undefined && !master.tokenIds.includes(request.tokenId)) {
    throw new ColonnadeError('unauthorized', 'the token was revoked');
  }
  if (minion === undefined) return { kind: 'unknown_minion', onUnknownMinion: master.onUnknownMinion };
  const envs = resolveEnvs(request.pillarenv, minion, tree);
  if (findForbiddenEnv(envs, { master, minion, tree, task: view.task, nowMs }, policy) !== undefined) {
    throw new ColonnadeError('forbidden', 'the pillarenv is not meant for this minion');
  }
  const scopes = scopesToRead(envs, { master: request.master, id: request.minionId }, tree);
  return { kind: 'merged', envs, scopes, merged: mergeScopes(scopes, view.scope) };
}
