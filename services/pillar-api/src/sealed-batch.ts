import { type Call, ColonnadeError } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { Principal } from './auth/authenticate.ts';
import { requireOn } from './auth/scope.ts';
import type { Kms, Relocation } from './kms.ts';
import { checkCount, chunksOf } from './kms-check.ts';

/**
 * Has sealed values sealed for other places; their plaintext stays in the key service. Whoever chooses where a secret
 * stands chooses who reads it, so the caller must be one who may read each of them, and each batch has his grant.
 * @throws ColonnadeError `forbidden` | `decrypt_failed` | `kid_unknown` | `kms_refused` | `kms_unavailable`
 */
export async function resealAll(
  kms: Pick<Kms, 'reseal'>,
  principal: Principal,
  moves: readonly Relocation[],
  call: Call,
): Promise<Value[]> {
  if (moves.length === 0) return [];
  for (const { from } of moves) await requireOn(principal, 'secret:reveal', from);
  const sealed: Value[] = [];
  for (const chunk of chunksOf(moves)) {
    for (const [i, item] of (await kms.reseal(principal, chunk, call)).entries()) {
      if (!item.ok) throw asStored(item.error.code, item.error.message, chunk[i]?.from.name ?? '');
      sealed.push(item.result);
    }
  }
  checkCount(sealed, moves);
  return sealed;
}

/** Here it is not the request that is at fault, but what is stored. */
function asStored(code: ColonnadeError['code'], message: string, name: string): ColonnadeError {
  const isStored = code === 'value_invalid' || code === 'decrypt_failed';
  return new ColonnadeError(
    isStored ? 'decrypt_failed' : code,
    `the secret ${JSON.stringify(name)}: ${message}`,
  );
}
