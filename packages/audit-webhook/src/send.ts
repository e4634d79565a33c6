import { setTimeout as sleep } from 'node:timers/promises';
import { ColonnadeError, toColonnadeError } from '@colonnade/contracts';
import { backoffMs } from './backoff.ts';
import { eventListBody, type Item } from './batch.ts';
import type { Answer } from './post.ts';
import type { Throttle } from './throttle.ts';

/** What became of a list: the webhook has it, all but some events that it will never take. */
export type Sent<T extends Item> = { refused: { item: T; status: number }[] };

export type SendOptions = {
  post: (body: Uint8Array) => Promise<Answer>;
  throttle: Throttle;
  initialBackoffMs: number;
  onAnswer: (answer: string) => void;
  onFailure: (error: ColonnadeError, attempt: number) => void;
  onSuccess: () => void;
};

/** The body itself is refused: sending it again cannot succeed. Everything else may be repaired at the other side. */
const REFUSED: ReadonlySet<number> = new Set([400, 413, 422]);

/**
 * Sends a list until the webhook has it. A list that is refused is halved, until the events that are at fault are alone.
 * @throws ColonnadeError `unavailable` when the signal comes first
 */
export async function sendList<T extends Item>(
  items: readonly T[],
  options: SendOptions,
  signal: AbortSignal,
): Promise<Sent<T>> {
  const status = await sendUntilAnswered(eventListBody(items), options, signal);
  if (!REFUSED.has(status)) return { refused: [] };
  const [only] = items;
  if (items.length === 1 && only !== undefined) return { refused: [{ item: only, status }] };
  const middle = Math.ceil(items.length / 2);
  const first = await sendList(items.slice(0, middle), options, signal);
  const second = await sendList(items.slice(middle), options, signal);
  return { refused: [...first.refused, ...second.refused] };
}

/** @returns a status that is final: a success, or a refusal of the body */
async function sendUntilAnswered(
  body: Uint8Array,
  options: SendOptions,
  signal: AbortSignal,
): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    await options.throttle.accept(signal);
    const answer = await options.post(body).catch((thrown: unknown) => toColonnadeError(thrown));
    options.onAnswer(answer instanceof ColonnadeError ? 'none' : String(answer.status));
    if (!(answer instanceof ColonnadeError)) {
      if (answer.status >= 200 && answer.status < 300) {
        options.onSuccess();
        return answer.status;
      }
      if (REFUSED.has(answer.status)) return answer.status;
    }
    const error =
      answer instanceof ColonnadeError
        ? answer
        : new ColonnadeError('unavailable', `the webhook answered ${answer.status}`);
    options.onFailure(error, attempt);
    const retryAfterMs = answer instanceof ColonnadeError ? undefined : answer.retryAfterMs;
    await sleep(backoffMs(options.initialBackoffMs, attempt, retryAfterMs), undefined, { signal }).catch(
      () => {},
    );
    if (signal.aborted) throw error;
  }
}
