import { type Call, ColonnadeError, type mergerCompile, toColonnadeError } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { z } from 'zod';
import type { PillarenvPolicy } from './entitlement.ts';
import type { EstateCache } from './estate-cache.ts';
import type { Merged } from './merge.ts';
import { planMerge } from './plan.ts';

type Request = z.output<typeof mergerCompile.request>;
type Answer = z.output<typeof mergerCompile.response>;
type Item = Answer['items'][number];

/**
 * The pillars of many minions, all of one moment of the estate. Decided exactly as the merge decides, with `auto`; secrets
 * stay sealed, and no minion is registered.
 * @throws ColonnadeError `unavailable`
 */
export async function compilePillars(
  { minions }: Request,
  deps: { estate: Pick<EstateCache, 'read'>; policy: PillarenvPolicy },
  call: Call,
): Promise<Answer> {
  const { clock, result } = await deps.estate.read(call, (view) =>
    minions.map(({ master, minion_id: minionId }): Item => {
      try {
        const request = { master, minionId, pillarenv: 'auto', tokenId: undefined };
        const plan = planMerge(view, request, deps.policy);
        if (plan.kind === 'merged') return { ok: true, result: resultOf(plan.merged) };
        throw new ColonnadeError('unknown_minion', 'the minion is not registered with this master');
      } catch (thrown) {
        // What the view lacks is read, and then this is computed again.
        if (!(thrown instanceof ColonnadeError)) throw thrown;
        const { code, message } = toColonnadeError(thrown);
        return { ok: false, error: { code, message } };
      }
    }),
  );
  return { clock: clock.tick, items: result };
}

function resultOf(merged: Merged): { pillar: Value; secrets: string[] } {
  const pillar: { [name: string]: Value } = Object.create(null);
  const secrets: string[] = [];
  for (const [name, { winner }] of merged) {
    pillar[name] = winner.value;
    if (winner.isSecret) secrets.push(name);
  }
  return { pillar, secrets: secrets.sort() };
}
