import {
  type Call,
  ColonnadeError,
  type kmsCheck,
  LIMITS,
  type OpenContext,
  type PillarContext,
} from '@colonnade/contracts';
import { canonicalBytes, type Value } from '@colonnade/value';
import type { z } from 'zod';

/** A batch stays below the limit with what stands around its items. */
const CHUNK_BYTES = LIMITS.kmsBatchBytes - 256 * 1024;

/** A sealed value, and where it is to open. */
export type Sealed = { context: PillarContext; value: Value };

type Check = {
  check(message: z.output<typeof kmsCheck.request>, call: Call): Promise<z.output<typeof kmsCheck.response>>;
};

/** The context of a pillar as the key service takes it. */
export function toWire(context: PillarContext): OpenContext {
  const { tgtType, tgtId, pillarenv, name } = context;
  return { tgt_type: tgtType, tgt_id: tgtId, pillarenv, name };
}

/**
 * Which of these values do not open in their places: another key, or not what was sealed.
 * @returns their places in the list
 * @throws ColonnadeError `kms_unavailable` | `key_not_configured`
 */
export async function findUnopenable(
  kms: Check,
  values: readonly Sealed[],
  call: Call,
): Promise<ReadonlySet<number>> {
  const bad = new Set<number>();
  let at = 0;
  for (const chunk of chunksOf(values)) {
    const items = chunk.map(({ context, value }) => ({ context: toWire(context), enc: value }));
    const answer = await kms.check({ items }, call);
    checkCount(answer.items, chunk);
    for (const item of answer.items) {
      if (!item.ok && item.error.code === 'key_not_configured')
        throw new ColonnadeError(item.error.code, item.error.message);
      if (!item.ok) bad.add(at);
      at += 1;
    }
  }
  return bad;
}

/**
 * What the key service has sealed is stored only when it opens where it is to stand: of what does not, nobody would know before he needs it.
 * @throws ColonnadeError `kms_unavailable`: nothing is to be stored, and another try may reach a sound process
 */
export async function requireOpening(kms: Check, sealed: readonly Sealed[], call: Call): Promise<void> {
  const bad = await findUnopenable(kms, sealed, call);
  if (bad.size === 0) return;
  throw new ColonnadeError(
    'kms_unavailable',
    `the key service has sealed ${bad.size} of ${sealed.length} values so that they do not open; nothing is stored`,
  );
}

/** @throws ColonnadeError `internal` */
export function checkCount(answered: readonly unknown[], asked: readonly unknown[]): void {
  if (answered.length === asked.length) return;
  throw new ColonnadeError('internal', 'the key service answered with another number of items');
}

/** In parts that one message holds. */
export function* chunksOf<T extends { value: Value }>(items: readonly T[]): Generator<T[]> {
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
