import {
  type Call,
  ColonnadeError,
  type Explanation,
  type mergerExplain,
  type Origin,
  SECRET_MASK,
} from '@colonnade/contracts';
import type { PillarRecord } from '@colonnade/estate-store';
import type { z } from 'zod';
import type { PillarenvPolicy } from './entitlement.ts';
import type { EstateCache } from './estate-cache.ts';
import type { MergedKey } from './merge.ts';
import { planMerge } from './plan.ts';

type ExplainRequest = z.output<typeof mergerExplain.request>;

/**
 * Where each key of a minion's pillar comes from, and what it overrode. Decided exactly as the merge decides; secrets
 * are never opened, nor is a minion registered.
 * @throws ColonnadeError `unknown_master` | `unknown_minion` | `forbidden` | `bad_request` | `unavailable`
 */
export async function explainMerge(
  request: ExplainRequest,
  deps: { estate: Pick<EstateCache, 'read'>; policy: PillarenvPolicy },
  call: Call,
): Promise<Explanation> {
  const { master, minion_id: minionId, pillarenv } = request;
  const { clock, result } = await deps.estate.read(call, (view) =>
    planMerge(view, { master, minionId, pillarenv, tokenId: undefined }, deps.policy),
  );
  if (result.kind === 'unknown_minion') {
    throw new ColonnadeError('unknown_minion', 'the minion is not registered with this master');
  }
  const names = [...result.merged].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    clock: clock.tick,
    master,
    minion_id: minionId,
    pillarenv: result.envs.join(','),
    keys: names.map(([name, key]) => explainKey(name, key, request.omit_values === true)),
  };
}

function explainKey(
  name: string,
  { winner, overrode }: MergedKey,
  omitValue: boolean,
): Explanation['keys'][number] {
  return {
    name,
    is_secret: winner.isSecret,
    value: omitValue ? null : winner.isSecret ? SECRET_MASK : winner.value,
    winner: originOf(winner),
    overrode: overrode.map(originOf),
  };
}

function originOf({ pid, tgtType, tgtId, pillarenv }: PillarRecord): Origin {
  return { pid, tgt_type: tgtType, tgt_id: tgtId, pillarenv };
}
