import {
  type Call,
  ColonnadeError,
  encodeTree,
  LIMITS,
  type PillarContext,
  zEnc,
} from '@colonnade/contracts';
import { canonicalBytes, type Value } from '@colonnade/value';
import type { Principal } from './auth/authenticate.ts';
import { requireOn } from './auth/scope.ts';
import { type Kms, toWire } from './kms.ts';

/** A sealed value that is to stand somewhere else. */
export type Relocation = { from: PillarContext; to: PillarContext; value: Value };

/** A batch stays below the limit with what stands around its items. */
const CHUNK_BYTES = LIMITS.kmsBatchBytes - 256 * 1024;

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
    const items = chunk.map(({ from, to, value }) => ({ from: toWire(from), to: toWire(to), enc: value }));
    const answer = await kms.reseal(principal, { items }, call);
    for (const [i, item] of answer.items.entries()) {
      if (!item.ok) throw asStored(item.error.code, item.error.message, chunk[i]?.from.name ?? '');
      sealed.push(encodeTree(zEnc, item.result));
    }
  }
  if (sealed.length !== moves.length)
    throw new ColonnadeError('internal', 'the key service answered with fewer items than it was asked for');
  return sealed;
}

/**
 * Which of these values no longer open where they were sealed: another key, or not what was stored.
 * @returns their places in the list
 * @throws ColonnadeError `kms_unavailable` | `key_not_configured`
 */
export async function findUnopenable(
  kms: Pick<Kms, 'check'>,
  kept: readonly { context: PillarContext; value: Value }[],
  call: Call,
): Promise<ReadonlySet<number>> {
  const bad = new Set<number>();
  let at = 0;
  for (const chunk of chunksOf(kept)) {
    const items = chunk.map(({ context, value }) => ({ context: toWire(context), enc: value }));
    const answer = await kms.check({ items }, call);
    for (const item of answer.items) {
      if (!item.ok && item.error.code === 'key_not_configured')
        throw new ColonnadeError(item.error.code, item.error.message);
      if (!item.ok) bad.add(at);
      at += 1;
    }
  }
  return bad;
}

function* chunksOf<T extends { value: Value }>(items: readonly T[]): Generator<T[]> {
  let chunk: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const size = canonicalBytes(item.value).length;
    if (chunk.length > 0 && (bytes + size > CHUNK_BYTES || chunk.length === LIMITS.kmsBatchItems)) {
      yield chunk;
      [chunk, bytes] = [[], 0];
    }
    chunk.push(item);
    bytes += size;
  }
  if (chunk.length > 0) yield chunk;
}

/** Here it is not the request that is at fault, but what is stored. */
function asStored(code: ColonnadeError['code'], message: string, name: string): ColonnadeError {
  const isStored = code === 'value_invalid' || code === 'decrypt_failed';
  return new ColonnadeError(
    isStored ? 'decrypt_failed' : code,
    `the secret ${JSON.stringify(name)}: ${message}`,
  );
}
