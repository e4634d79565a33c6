import { ColonnadeError, type ErrorCode } from '@colonnade/contracts';
import type { EstateStore } from '@colonnade/estate-store';
import { barredKids, type Key } from './plan.ts';

/** What the key service answers when it has changed nothing. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  ...(['kms_refused', 'forbidden', 'unauthorized', 'bad_request', 'not_found', 'conflict'] as const),
]);

/**
 * Bars versions of a key in the store and in the KMS, or lets them open again. The store comes first when they are barred: from its answer on
 * nothing can come to stand under them. It comes last when they are let open again. When the KMS refuses, what the store had closed is as
 * before; when it gives no answer it may have barred them, so they stay closed until somebody asks again.
 * @throws ColonnadeError what the store or the KMS says
 */
export async function closeInStep(
  store: Pick<EstateStore, 'readClosedKids' | 'closeKids'>,
  key: Pick<Key, 'versions' | 'min_version'>,
  version: number,
  tellKms: () => Promise<unknown>,
): Promise<void> {
  if (version < key.min_version) {
    await tellKms();
    await store.closeKids(barredKids(key, version));
    return;
  }
  const before = await store.readClosedKids();
  await store.closeKids(barredKids(key, version));
  try {
    await tellKms();
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError) || !REFUSALS.has(thrown.code)) throw asUnknown(thrown);
    await store.closeKids(before).catch(() => undefined);
    throw thrown;
  }
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
