import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type Call,
  ColonnadeError,
  type ErrorCode,
  LIMITS,
  remainingMs,
  toColonnadeError,
} from '@colonnade/contracts';
import type { Value } from '@colonnade/value';

export type ItemResult<R> =
  | { ok: true; result: R }
  | { ok: false; error: { code: ErrorCode; message: string } };

/** Milliseconds a batch may keep the event loop for itself. */
const SLICE_MS = 5;

/**
 * Answers each item on its own: a faulty one gets its error, the others their result. Other requests get their turn in
 * between, and nobody works for a caller who has stopped waiting.
 * @throws ColonnadeError `expired`, `internal` for a fault of ours
 */
export async function answerEach<I, R>(
  items: readonly I[],
  call: Call,
  answer: (item: I) => R,
): Promise<ItemResult<R>[]> {
  const results: ItemResult<R>[] = [];
  let sliceMs = performance.now();
  for (const item of items) {
    if (performance.now() - sliceMs > SLICE_MS) {
      await nextTurn();
      sliceMs = performance.now();
    }
    if (remainingMs(call) === 0)
      throw new ColonnadeError('expired', 'the time budget of the request is used up');
    results.push(answerOne(item, answer));
  }
  return results;
}

function answerOne<I, R>(item: I, answer: (item: I) => R): ItemResult<R> {
  try {
    return { ok: true, result: answer(item) };
  } catch (thrown) {
    const { code, message } = toColonnadeError(thrown);
    if (code === 'internal') throw thrown;
    return { ok: false, error: { code, message } };
  }
}

/** How many items of a batch ended how: `ok` or an error code. */
export function countOutcomes(results: readonly ItemResult<unknown>[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const result of results) {
    const code = result.ok ? 'ok' : result.error.code;
    counts.set(code, (counts.get(code) ?? 0) + 1);
  }
  return counts;
}

/** Those counts as annotations of an audit record. */
export function outcomeAnnotations(results: readonly ItemResult<unknown>[]): Record<string, string> {
  const entries = [...countOutcomes(results)].map(([code, count]) => [
    `colonnade/items-${code}`,
    String(count),
  ]);
  return Object.fromEntries(entries);
}

/** @throws ColonnadeError `too_large` for a batch of sealed values that no message could take back */
export function checkBatchBytes(items: readonly { enc: Value }[]): void {
  const bytes = items.reduce((sum, { enc }) => sum + sealedSize(enc), 0);
  if (bytes <= LIMITS.kmsBatchBytes) return;
  throw new ColonnadeError('too_large', `the batch is over ${LIMITS.kmsBatchBytes} bytes; split it`);
}

/** Characters of a stored value's texts: close to its size in a message. */
function sealedSize(enc: Value): number {
  if (typeof enc === 'string') return enc.length;
  if (typeof enc !== 'object' || enc === null) return 0;
  return Object.values(enc).reduce<number>((sum, part) => sum + sealedSize(part), 0);
}
