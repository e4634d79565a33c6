import { createSecretKey } from 'node:crypto';
import { toColonnadeError } from '@colonnade/contracts';
import type { EstateStore, RewrapProgress } from '@colonnade/estate-store';
import { aadOf } from '../../services/crypto-kms/src/context.ts';
import { type Kek, type Keys, openValue, rewrapDek } from '../../services/crypto-kms/src/envelope.ts';
import { holdLease } from '../../services/pillar-api/src/rewrap/lease.ts';
import { rewrapAll } from '../../services/pillar-api/src/rewrap/run.ts';

export const [OLD_KID, NEW_KID] = ['pillars-v1', 'pillars-v2'] as const;

/** The keys of a KMS whose next version seals; `all` as long as the one before still opens. */
export function rewrapKeys(hex: readonly string[], known: 'all' | 'new' = 'all'): Keys {
  const keks = [OLD_KID, NEW_KID].map(
    (kid, i): Kek => ({ kid, key: createSecretKey(Buffer.from(hex[i] ?? '', 'hex')) }),
  );
  const [, active] = keks;
  const opening = known === 'all' ? keks : keks.slice(1);
  return {
    active: () => active as Kek,
    find: (kid) => opening.find((kek) => kek.kid === kid),
    prepare: async () => {},
  };
}

/** What pillar-api does from a rotation on until the key before is closed, with the KMS in the same process. */
export async function rewrapAndClose(store: EstateStore, keys: Keys): Promise<void> {
  const now = Date.now();
  const progress: RewrapProgress = {
    ...{
      key: 'pillars',
      kid: NEW_KID,
      by: 'test',
      startedAtMs: now,
      updatedAtMs: now,
      finishedAtMs: undefined,
    },
    ...{ rewrapped: 0, failed: 0, left: 0 },
  };
  await using lease = await holdLease(store, { name: 'key-rewrap', holder: 'test', ttlMs: 10_000 });
  await rewrapAll([OLD_KID], progress, {
    store,
    kms: {
      rewrap: async ({ items }) => ({
        items: items.map(({ context, ...wrapping }) =>
          answer(() => rewrapDek(keys, aadOf(context), wrapping)),
        ),
      }),
      check: async ({ items }) => ({
        items: items.map(({ context, enc }) =>
          answer(() => {
            openValue(keys, aadOf(context), enc);
            return {};
          }),
        ),
      }),
    },
    events: { rewrapped() {}, rewrapFaulty() {} },
    ...{ lease, perSecond: 1_000_000, signal: new AbortController().signal },
  });
  await store.closeKids([OLD_KID]);
}

function answer<R>(work: () => R) {
  try {
    return { ok: true as const, result: work() };
  } catch (thrown) {
    const { code, message } = toColonnadeError(thrown);
    return { ok: false as const, error: { code, message } };
  }
}
