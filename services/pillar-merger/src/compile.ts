import { type Call, ColonnadeError, LIMITS, type mergerCompile } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { z } from 'zod';
import type { PillarenvPolicy } from './entitlement.ts';
import type { EstateCache } from './estate-cache.ts';
import type { EstateView } from './estate-view.ts';
import type { Merged } from './merge.ts';
import { planMerge } from './plan.ts';
import { recordBytes } from './record-bytes.ts';

type Request = z.output<typeof mergerCompile.request>;
type Answer = z.output<typeof mergerCompile.response>;
type Item = Answer['items'][number];

type Deps = { estate: Pick<EstateCache, 'read'>; policy: PillarenvPolicy };
/** An item, and the bytes it takes in the answer. */
type Weighed = { item: Item; bytes: number };

/**
 * The pillars of the first of these minions, all of one moment of the estate: as many as LIMITS.compileBytes hold, and at
 * least one. Decided exactly as the merge decides, with `auto`; secrets stay sealed, and no minion is registered.
 * @throws ColonnadeError `unavailable`
 */
export async function compilePillars(
  { minions, fresh = false }: Request,
  { estate, policy }: Deps,
  call: Call,
): Promise<Answer> {
  const compute = (view: EstateView) => {
    const items: Item[] = [];
    let sum = 0;
    let largest = 0;
    for (const minion of minions) {
      // The next one is likely to be as large as those before: to merge it in vain would hold up the merges of masters.
      if (items.length > 0 && sum + largest > LIMITS.compileBytes) break;
      const { item, bytes } = compileOne(view, minion, policy);
      sum += bytes;
      if (items.length > 0 && sum > LIMITS.compileBytes) break;
      largest = Math.max(largest, bytes);
      items.push(item);
    }
    return items;
  };
  const { clock, result } = await estate.read(call, compute, { fresh });
  return { clock: clock.tick, items: result };
}

function compileOne(
  view: EstateView,
  { master, minion_id: minionId }: Request['minions'][number],
  policy: PillarenvPolicy,
): Weighed {
  try {
    const request = { master, minionId, pillarenv: 'auto', tokenId: undefined };
    const plan = planMerge(view, request, policy);
    if (plan.kind === 'merged') return weigh(plan.merged);
    throw new ColonnadeError('unknown_minion', 'the minion is not registered with this master');
  } catch (thrown) {
    // What the view lacks is read, and then this is computed again.
    if (!(thrown instanceof ColonnadeError)) throw thrown;
    return { item: failed(thrown), bytes: ERROR_BYTES };
  }
}

/** A guess for an error in the answer. */
const ERROR_BYTES = 256;

/** One that fits no message is an error that lasts: until its pillars are fewer or smaller. */
function weigh(merged: Merged): Weighed {
  let bytes = ERROR_BYTES;
  for (const { winner } of merged.values()) bytes += recordBytes(winner);
  if (bytes <= LIMITS.compilePillarBytes) return { item: { ok: true, result: resultOf(merged) }, bytes };
  const why = `its ${merged.size} pillars are ${bytes} bytes, over the ${LIMITS.compilePillarBytes} that are compiled for a minion`;
  return { item: failed(new ColonnadeError('too_large', why)), bytes };
}

function failed({ code, message }: ColonnadeError): Item {
  return { ok: false, error: { code, message } };
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
