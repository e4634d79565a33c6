import { randomUUID } from 'node:crypto';
import { ColonnadeError, type ErrorCode } from '@colonnade/contracts';
import type { EstateStore } from '@colonnade/estate-store';
import { type HeldLease, holdLease } from './lease.ts';
import { barredKids, type Key } from './plan.ts';

/** What the key service answers when it has changed nothing. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  ...(['kms_refused', 'forbidden', 'unauthorized', 'bad_request', 'not_found', 'conflict'] as const),
]);

/** How long one that was killed keeps the next from deciding. */
const LEASE_MS = 10_000;

/**
 * Bars versions of a key in the store and in the KMS, or lets them open again. The store comes first when they are barred: from its answer on
 * nothing can come to stand under them. It comes last when they are let open again. When the KMS refuses, what the store had closed is as
 * before; when it gives no answer it may have barred them, so they stay closed until somebody asks again. One at a time does it: of two at
 * once, the one that was refused would let open what the other has barred.
 * @param readKey as the KMS has it
 * @throws ColonnadeError `conflict` while another one does it; what the store or the KMS says
 */
export async function closeInStep(
  store: Pick<EstateStore, 'readClosedKids' | 'closeKids' | 'acquireLease' | 'releaseLease'>,
  readKey: () => Promise<Pick<Key, 'versions' | 'min_version'>>,
  version: number,
  tellKms: () => Promise<unknown>,
): Promise<void> {
  const lease = { name: 'key-min-version', holder: randomUUID(), ttlMs: LEASE_MS };
  await using held = await holdLease(store, lease).catch(asBusy);
  const key = await readKey();
  if (version < key.min_version) {
    await tellKms();
    held.check();
    await store.closeKids(barredKids(key, version));
    return;
  }
  const before = await store.readClosedKids();
  await store.closeKids(barredKids(key, version));
  try {
    await tellKms();
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError) || !REFUSALS.has(thrown.code)) throw asUnknown(thrown);
    await reopen(store, before, held).catch(() => undefined);
    throw thrown;
  }
}

/** Not when somebody else may have begun meanwhile. */
async function reopen(
  store: Pick<EstateStore, 'closeKids'>,
  before: readonly string[],
  held: HeldLease,
): Promise<void> {
  held.check();
  await store.closeKids(before);
}

function asBusy(thrown: unknown): never {
  if (!(thrown instanceof ColonnadeError) || thrown.code !== 'conflict') throw thrown;
  throw new ColonnadeError(
    'conflict',
    'the least version of the key is being set by another request: look, and ask again',
    { cause: thrown },
  );
}

function asUnknown(thrown: unknown): unknown {
  if (!(thrown instanceof ColonnadeError)) return thrown;
  const { code, message } = thrown;
  const why =
    'whether the versions are barred is not known, and no write brings anything under them meanwhile';
  return new ColonnadeError(code, `${message}; ${why}: ask again, or lower the least version`, {
    cause: thrown,
  });
}
