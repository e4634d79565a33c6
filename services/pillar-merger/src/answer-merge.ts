import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Call, ColonnadeError } from '@colonnade/contracts';
import type { PillarRecord } from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import type { PillarenvPolicy } from './entitlement.ts';
import type { EstateCache } from './estate-cache.ts';
import type { Merged } from './merge.ts';
import type { MergeRecord } from './merge-record.ts';
import { type AskKms, openSecrets, secretsOf } from './open-secrets.ts';
import { type Plan, planMerge } from './plan.ts';
import type { VerifyToken } from './verify-token.ts';

export type MergeRequest = { token: string; master: string; minionId: string; pillarenv: string };
export type MergeAnswer = { clock: number; pillar: { readonly [name: string]: Value } };

export type MergeDeps = {
  estate: Pick<EstateCache, 'read'>;
  verifyToken: VerifyToken;
  askKms: AskKms;
  /** Asks the owner of the estate to register a minion that is not there yet. */
  registerMinion: (request: { token: string; master: string; minionId: string }, call: Call) => Promise<void>;
  policy: PillarenvPolicy;
  beginRecord: (request: MergeRequest) => MergeRecord;
};

type MergedPlan = Extract<Plan, { kind: 'merged' }>;

/**
 * The merged pillar of a minion, secrets opened: seed 000, get_merged. Whole or not at all, and on record before it is
 * returned. The record is stored while the KMS opens, since all it says is known by then: a merge whose secrets are not
 * opened after all has a record of that refusal beside it.
 * @throws ColonnadeError `unauthorized` | `unknown_master` | `unknown_minion` | `forbidden` | `bad_request` |
 *   `unavailable` | `kms_unavailable` | `kms_refused` | `bus_unavailable` (not on record)
 */
export async function answerMerge(request: MergeRequest, deps: MergeDeps, call: Call): Promise<MergeAnswer> {
  const record = deps.beginRecord(request);
  const { tokenId } = await deps.verifyToken(request.token, request.master);
  const { clock, plan } = await planOrRegister(request, tokenId, deps, call);
  const secrets = secretsOf(plan.merged);
  // The KMS is asked first, and its request has left before the record is made: then all of that overlaps its work.
  const opening = openSecrets(secrets, request, deps.askKms, call);
  const recorded = nextTurn().then(() => record.store({ clock, secrets: secrets.length }));
  // Whichever fails first must not leave the other's failure to nobody.
  recorded.catch(() => {});
  const opened = await opening;
  await recorded;
  return { clock, pillar: buildPillar(plan.merged, opened) };
}

async function planOrRegister(
  request: MergeRequest,
  tokenId: string,
  deps: MergeDeps,
  call: Call,
): Promise<{ clock: number; plan: MergedPlan }> {
  const read = () => deps.estate.read(call, (view) => planMerge(view, { ...request, tokenId }, deps.policy));
  let { clock, result } = await read();
  if (result.kind === 'unknown_minion' && result.onUnknownMinion === 'register') {
    await deps.registerMinion(request, call);
    ({ clock, result } = await read());
  }
  if (result.kind === 'merged') return { clock: clock.tick, plan: result };
  throw new ColonnadeError('unknown_minion', 'the minion is not registered with this master');
}

function buildPillar(merged: Merged, opened: ReadonlyMap<PillarRecord, Value>): MergeAnswer['pillar'] {
  const pillar: { [name: string]: Value } = Object.create(null);
  for (const [name, { winner }] of merged) {
    const value = winner.isSecret ? opened.get(winner) : winner.value;
    // Cannot be: every sealed winner was opened. A pillar without it would be a partial one.
    if (value === undefined) throw new ColonnadeError('internal', 'a secret was not opened');
    pillar[name] = value;
  }
  return pillar;
}
