const FACTOR = 1.5;
const JITTER = 0.2;
/** Kubernetes gives up after five tries; here the batch stays in the stream, so the pause only stops growing. */
const LONGEST_MS = 5 * 60 * 1000;

/**
 * The pause before try `attempt` + 1, milliseconds: the initial one, 1.5 times as long each time, and up to a fifth more by
 * chance (k8s.io/apiserver pkg/util/webhook). A webhook that names a longer one is given it.
 * @param attempt tries that have failed, from 1
 */
export function backoffMs(
  initialMs: number,
  attempt: number,
  retryAfterMs: number | undefined,
  random: () => number = Math.random,
): number {
  const grown = Math.min(initialMs * FACTOR ** Math.min(attempt - 1, 30), Math.max(LONGEST_MS, initialMs));
  return Math.max(grown * (1 + JITTER * random()), retryAfterMs ?? 0);
}
