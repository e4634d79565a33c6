import type { Bus } from '@colonnade/bus';
import {
  ColonnadeError,
  type ErrorCode,
  estateListTouched,
  LIMITS,
  mergerCompile,
  startCall,
  type Touched,
  type TouchedMinion,
} from '@colonnade/contracts';
import type { z } from 'zod';
import { nameOf } from '../store/minion-name.ts';
import { forEachAtOnce } from './at-once.ts';
import type { CompiledPillar } from './content.ts';

type Asker = Pick<Bus, 'request'>;
export type Compiled = { minion: TouchedMinion; result: CompiledPillar | ColonnadeError };

const BUDGET_MS = 10_000;
/** Nobody waits for these, and a merger lets its masters go first. */
const COMPILE_BUDGET_MS = 20_000;
/** Requests on their way at once; the queue group spreads them over the mergers. */
const AT_ONCE = 4;

/** The minions of all of these, each once. @throws ColonnadeError `unavailable` */
export async function findTouched(bus: Asker, touched: readonly Touched[]): Promise<TouchedMinion[]> {
  const found = new Map<string, TouchedMinion>();
  const wanted = touched.some(({ kind }) => kind === 'all') ? [{ kind: 'all' } as const] : touched;
  // An import may touch thousands of minions, one by one.
  await forEachAtOnce(wanted, AT_ONCE, async (one) => {
    let after: string | undefined;
    do {
      const more = after === undefined ? {} : { after };
      const request = { touched: one, limit: LIMITS.pageRows, ...more };
      const page = await bus.request(estateListTouched, request, startCall(BUDGET_MS));
      for (const minion of page.minions) found.set(nameOf(minion), minion);
      after = page.next;
    } while (after !== undefined);
  });
  return [...found.values()];
}

/**
 * Compiles minions, spread over the mergers, and hands over what comes together. Never throws for one of them; what `take`
 * throws ends it, after what is under way.
 * @param fresh from the store, whatever the mergers have cached
 */
export async function compileMinions(
  bus: Asker,
  minions: readonly TouchedMinion[],
  take: (compiled: readonly Compiled[]) => Promise<void>,
  signal: AbortSignal,
  fresh = false,
): Promise<void> {
  const batches: (readonly TouchedMinion[])[] = [];
  for (let i = 0; i < minions.length; i += LIMITS.compileMinions) {
    batches.push(minions.slice(i, i + LIMITS.compileMinions));
  }
  await forEachAtOnce(batches, AT_ONCE, (batch) => compileBatch(bus, batch, take, signal, fresh));
}

/** A merger answers as many as fit, the first ones; then the rest is asked for, of whichever has time. */
async function compileBatch(
  bus: Asker,
  minions: readonly TouchedMinion[],
  take: (compiled: readonly Compiled[]) => Promise<void>,
  signal: AbortSignal,
  fresh: boolean,
): Promise<void> {
  for (let rest = minions; rest.length > 0 && !signal.aborted; ) {
    const answered = await askMerger(bus, rest, fresh);
    await take(answered);
    rest = rest.slice(answered.length);
  }
}

/** @returns of the first minions, at least of one; an error of the request is one of all of them */
async function askMerger(bus: Asker, minions: readonly TouchedMinion[], fresh: boolean): Promise<Compiled[]> {
  const asked = minions.map(({ master, id }) => ({ master, minion_id: id }));
  const request = fresh ? { minions: asked, fresh } : { minions: asked };
  try {
    const { items } = await bus.request(mergerCompile, request, startCall(COMPILE_BUDGET_MS));
    if (items.length === 0) throw new ColonnadeError('internal', 'the merger has answered nothing');
    return minions.slice(0, items.length).map((minion, i) => ({ minion, result: resultOf(items[i]) }));
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError)) throw thrown;
    return minions.map((minion) => ({ minion, result: thrown }));
  }
}

type Item = z.output<typeof mergerCompile.response>['items'][number];

function resultOf(item: Item | undefined): Compiled['result'] {
  if (item?.ok) return item.result;
  const { code = 'internal', message = 'the merger left it out' } = item?.error ?? {};
  return new ColonnadeError(code as ErrorCode, message);
}
