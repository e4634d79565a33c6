import { createHash } from 'node:crypto';
import { ColonnadeError, LIMITS } from '@colonnade/contracts';
import type { EstateStore, IdempotencyDraft, WriteResult } from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import type { Input } from './http/route.ts';
import type { Kms } from './kms.ts';

type Asked = Pick<Input<unknown, unknown, unknown>, 'principal' | 'bodySha256' | 'idempotencyKey' | 'call'>;

/** A write, and what is kept so that its answer can be given again; never a pillar's value. */
type Written = { result: WriteResult; kept: Value };
/** Makes the idempotency row for the write's transaction; undefined when the request has no key. */
type Keep = (kept: Value) => IdempotencyDraft | undefined;

/**
 * Carries a request out at most once per principal, route and Idempotency-Key. The row is written in the write's own
 * transaction, so there is no moment in which only one of the two exists.
 */
export type Idempotency = {
  once<A extends object>(
    asked: Asked,
    route: string,
    write: (keep: Keep) => Promise<Written>,
    answer: (kept: Value, tick: number) => Promise<A>,
  ): Promise<A & { replayed: boolean }>;
};

export function createIdempotency(
  store: Pick<EstateStore, 'findIdempotent'>,
  kms: Pick<Kms, 'mac'>,
): Idempotency {
  const inFlight = new Set<string>();
  return {
    async once(asked, route, write, answer) {
      if (asked.idempotencyKey === undefined) {
        const { result, kept } = await write(() => undefined);
        return { ...(await answer(kept, result.clock.tick)), replayed: false };
      }
      const scope = scopeOf(asked.principal.sub, route, asked.idempotencyKey);
      if (inFlight.has(scope)) {
        throw new ColonnadeError(
          'in_flight',
          'a request with this Idempotency-Key is being handled: try again later',
        );
      }
      inFlight.add(scope);
      try {
        return await carryOut(
          store,
          { scope, fingerprint: await kms.mac(asked.bodySha256, asked.call) },
          write,
          answer,
        );
      } finally {
        inFlight.delete(scope);
      }
    },
  };
}

async function carryOut<A extends object>(
  store: Pick<EstateStore, 'findIdempotent'>,
  key: { scope: string; fingerprint: string },
  write: (keep: Keep) => Promise<Written>,
  answer: (kept: Value, tick: number) => Promise<A>,
): Promise<A & { replayed: boolean }> {
  const earlier = await store.findIdempotent(key.scope);
  if (earlier !== undefined) {
    if (earlier.fingerprint !== key.fingerprint) throw mismatch();
    return { ...(await answer(earlier.response, earlier.tick)), replayed: true };
  }
  const expiresAtMs = Date.now() + LIMITS.idempotencyKeepMs;
  const { result, kept } = await write((response) => ({ ...key, response, expiresAtMs }));
  // Another process was faster: its answer counts.
  if (result.replayed) return { ...(await answer(result.response, result.tick)), replayed: true };
  return { ...(await answer(kept, result.clock.tick)), replayed: false };
}

function mismatch(): ColonnadeError {
  const why = 'this Idempotency-Key was used for a request with another body';
  return new ColonnadeError('idempotency_mismatch', why, { field: 'Idempotency-Key' });
}

/** Hashed: a fixed length, and no way to shift text from one part into the next. */
function scopeOf(sub: string, route: string, key: string): string {
  return createHash('sha256')
    .update(JSON.stringify([sub, route, key]))
    .digest('hex');
}
