import {
  type Call,
  ColonnadeError,
  type Explanation,
  LIMITS,
  type mergerExplain,
  type Origin,
  SECRET_MASK,
} from '@colonnade/contracts';
import type { PillarRecord } from '@colonnade/estate-store';
import type { z } from 'zod';
import type { PillarenvPolicy } from './entitlement.ts';
import type { EstateCache } from './estate-cache.ts';
import type { EstateView } from './estate-view.ts';
import type { Merged, MergedKey } from './merge.ts';
import { isUnsaved, overlayView, savedPid } from './overlay.ts';
import { planMerge } from './plan.ts';
import { valueBytes } from './record-bytes.ts';

type ExplainRequest = z.output<typeof mergerExplain.request>;

/**
 * Where each key of a minion's pillar comes from, and what it overrode. Decided exactly as the merge decides; secrets
 * are never opened, nor is a minion registered. Changes, memberships and what scopes held once may be supposed; what the
 * merge then reads and what the minion may have is decided with them, exactly as if they were saved.
 * @throws ColonnadeError `unknown_master` | `unknown_minion` | `forbidden` | `bad_request` | `unavailable` | `too_large`: told
 *   before the answer is made, which takes seconds of everybody's time
 */
export async function explainMerge(
  request: ExplainRequest,
  deps: { estate: Pick<EstateCache, 'read'>; policy: PillarenvPolicy },
  call: Call,
): Promise<Explanation> {
  const { master, minion_id: minionId, pillarenv } = request;
  const { clock, result } = await deps.estate.read(call, (view) => {
    requireCollections(view, request.collections ?? []);
    const asked = { master, minionId, pillarenv, tokenId: undefined };
    const plan = planMerge(overlayView(view, request), asked, deps.policy);
    // Memberships that are supposed have no rule.
    const byRule = request.collections === undefined ? view.minion(master, minionId)?.byRule : undefined;
    return { ...plan, byRule };
  });
  if (result.kind === 'unknown_minion') {
    throw new ColonnadeError('unknown_minion', 'the minion is not registered with this master');
  }
  requireRoom(result.merged, request.omit_values === true);
  const names = [...result.merged].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    clock: clock.tick,
    master,
    minion_id: minionId,
    pillarenv: result.envs.join(','),
    ...(result.byRule === undefined ? {} : { rule_collections: [...result.byRule] }),
    scopes: [...result.scopes],
    keys: names.map(([name, key]) => explainKey(name, key, request.omit_values === true)),
  };
}

/** Never refuses what would fit: escapes, and what is not ASCII, are not counted. @throws ColonnadeError `too_large` */
function requireRoom(merged: Merged, omitValues: boolean): void {
  let bytes = 0;
  for (const [name, { winner, overrode }] of merged) {
    bytes += KEY_BYTES + name.length + originBytes(winner);
    for (const other of overrode) bytes += originBytes(other);
    if (!omitValues && !winner.isSecret) bytes += isUnsaved(winner) ? 0 : valueBytes(winner);
  }
  if (bytes <= LIMITS.natsPayloadBytes) return;
  throw new ColonnadeError('too_large', `an explanation of ${merged.size} keys takes ${bytes} bytes`);
}

const KEY_BYTES = '{"is_secret":true,"name":"","overrode":[],"value":,"winner":},'.length;
const ORIGIN_BYTES = '{"pid":"","pillarenv":"","tgt_id":"","tgt_type":""}'.length;

function originBytes({ pid, pillarenv, tgtId, tgtType }: PillarRecord): number {
  return ORIGIN_BYTES + pid.length + pillarenv.length + tgtId.length + tgtType.length;
}

function explainKey(
  name: string,
  { winner, overrode }: MergedKey,
  omitValue: boolean,
): Explanation['keys'][number] {
  return {
    name,
    is_secret: winner.isSecret,
    value:
      omitValue || (isUnsaved(winner) && !winner.isSecret)
        ? null
        : winner.isSecret
          ? SECRET_MASK
          : winner.value,
    winner: originOf(winner),
    overrode: overrode.map(originOf),
  };
}

/** @throws ColonnadeError `bad_request` */
function requireCollections(view: EstateView, collections: readonly string[]): void {
  if (collections.every((id) => view.tree().get(id) !== undefined)) return;
  throw new ColonnadeError('bad_request', 'collections: there is no such collection', {
    field: 'collections',
  });
}

function originOf(record: PillarRecord): Origin {
  const { tgtType, tgtId, pillarenv } = record;
  const origin = { pid: savedPid(record), tgt_type: tgtType, tgt_id: tgtId, pillarenv };
  return isUnsaved(record) ? { ...origin, change: record.change } : origin;
}
