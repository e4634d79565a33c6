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
import type { CompiledPillar } from './content.ts';

type Asker = Pick<Bus, 'request'>;
export type MinionName = { master: string; id: string };
export type Compiled = { minion: TouchedMinion; result: CompiledPillar | ColonnadeError };

const BUDGET_MS = 10_000;
/** Requests on their way at once; the queue group spreads them over the mergers. */
const AT_ONCE = 4;

export const nameOf = ({ master, id }: MinionName) => `${master}/${id}`;

/** The minions of all of these, each once. @throws ColonnadeError `unavailable` */
export async function findTouched(bus: Asker, touched: readonly Touched[]): Promise<TouchedMinion[]> {
  const found = new Map<string, TouchedMinion>();
  const wanted = touched.some(({ kind }) => kind === 'all') ? [{ kind: 'all' } as const] : touched;
  for (const one of wanted) {
    let after: string | undefined;
    do {
      const more = after === undefined ? {} : { after };
      const request = { touched: one, limit: LIMITS.pageRows, ...more };
      const page = await bus.request(estateListTouched, request, startCall(BUDGET_MS));
      for (const minion of page.minions) found.set(nameOf(minion), minion);
      after = page.next;
    } while (after !== undefined);
  }
  return [...found.values()];
}

/** Compiles minions, spread over the mergers, and hands over each as it comes. Never throws for one of them. */
export async function compileMinions(
  bus: Asker,
  minions: readonly TouchedMinion[],
  take: (compiled: Compiled) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const batches: (readonly TouchedMinion[])[] = [];
  for (let i = 0; i < minions.length; i += LIMITS.compileMinions) {
    batches.push(minions.slice(i, i + LIMITS.compileMinions));
  }
  const work = async () => {
    for (let batch = batches.shift(); batch !== undefined && !signal.aborted; batch = batches.shift()) {
      for (const compiled of await compileBatch(bus, batch)) await take(compiled);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

async function compileBatch(bus: Asker, batch: readonly TouchedMinion[]): Promise<Compiled[]> {
  const minions = batch.map(({ master, id }) => ({ master, minion_id: id }));
  try {
    const { items } = await bus.request(mergerCompile, { minions }, startCall(BUDGET_MS));
    return batch.map((minion, i) => {
      const item = items[i];
      if (item?.ok) return { minion, result: item.result };
      const { code = 'internal', message = 'the merger left it out' } = item?.error ?? {};
      return { minion, result: new ColonnadeError(code as ErrorCode, message) };
    });
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError)) throw thrown;
    if (thrown.code !== 'too_large' || batch.length === 1) {
      return batch.map((minion) => ({ minion, result: thrown }));
    }
    // Large pillars: half of them at a time.
    const half = batch.length >> 1;
    const first = await compileBatch(bus, batch.slice(0, half));
    return [...first, ...(await compileBatch(bus, batch.slice(half)))];
  }
}
