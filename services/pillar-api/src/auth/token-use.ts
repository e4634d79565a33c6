import type { ApiTokenRecord, EstateStore } from '@colonnade/estate-store';

/** Between two notes of the same token's use: reads must not become writes. */
const EVERY_MS = 60_000;
/** Tokens remembered; it is forgotten whom they were when there are more. */
const REMEMBERED = 10_000;

/** Notes uses of API tokens in the background, each at most once a minute; what cannot be noted is left. */
export function createTokenUse(store: Pick<EstateStore, 'noteTokenUse'>) {
  const triedAtMs = new Map<string, number>();
  return (token: Pick<ApiTokenRecord, 'id' | 'lastUsedAtMs'>, nowMs: number): void => {
    const lastMs = Math.max(token.lastUsedAtMs ?? 0, triedAtMs.get(token.id) ?? 0);
    if (nowMs - lastMs < EVERY_MS) return;
    if (triedAtMs.size >= REMEMBERED) triedAtMs.clear();
    triedAtMs.set(token.id, nowMs);
    // The store is watched elsewhere, and the request itself says when it is away.
    store.noteTokenUse(token.id, nowMs).catch(() => {});
  };
}
