import { type Call, ColonnadeError, type kmsJwks, startCall } from '@colonnade/contracts';
import { importJWK } from 'jose';
import type { z } from 'zod';

export type Jwks = z.output<typeof kmsJwks.response>;
type VerifyKey = Awaited<ReturnType<typeof importJWK>>;

export type KeySet = {
  /**
   * The public key with this id, or undefined when the KMS knows none.
   * Throws `kms_unavailable` when the keys were never read, or too long ago.
   */
  find(kid: string): Promise<VerifyKey | undefined>;
  /** Rises whenever the keys were read anew. */
  readonly generation: number;
};

export type KeySetOptions = {
  fetchKeys: (call: Call) => Promise<Jwks>;
  /** An unknown kid makes the keys be read again, but not more often than this. */
  cooldownMs?: number;
  /** Older keys are read again at the next use; when that fails the old ones serve on, since tokens are revoked by id. */
  maxAgeMs?: number;
  fetchTimeoutMs?: number;
};

/** The public keys of master tokens, read from crypto-kms when needed. */
export function createKeySet(options: KeySetOptions): KeySet {
  const { fetchKeys, cooldownMs = 5000, maxAgeMs = 10 * 60_000, fetchTimeoutMs = 1000 } = options;
  let keys: ReadonlyMap<string, VerifyKey> | undefined;
  let generation = 0;
  let readAtMs = Number.NEGATIVE_INFINITY;
  let triedAtMs = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  const read = async (): Promise<void> => {
    triedAtMs = performance.now();
    keys = await importKeys(await fetchKeys(startCall(fetchTimeoutMs)));
    readAtMs = performance.now();
    generation += 1;
  };
  // Everyone who needs the keys at the same time shares one read.
  const readShared = (): Promise<void> => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  };

  return {
    async find(kid) {
      if (keys === undefined) await readShared().catch(unavailable);
      const isOld = performance.now() - readAtMs > maxAgeMs;
      const isUnknown = keys?.has(kid) !== true;
      const mayTry = reading !== undefined || performance.now() - triedAtMs > cooldownMs;
      if ((isOld || isUnknown) && mayTry) await readShared().catch(isUnknown ? unavailable : () => {});
      return keys?.get(kid);
    },
    get generation() {
      return generation;
    },
  };
}

async function importKeys(jwks: Jwks): Promise<ReadonlyMap<string, VerifyKey>> {
  const pairs = jwks.keys.map(async (jwk) => [jwk.kid, await importJWK(jwk, 'EdDSA')] as const);
  return new Map(await Promise.all(pairs));
}

function unavailable(thrown: unknown): never {
  throw new ColonnadeError('kms_unavailable', 'the keys of master tokens cannot be read', { cause: thrown });
}
