import type { KeyObject } from 'node:crypto';
import { createPublicKey } from 'node:crypto';
import { type Call, ColonnadeError, JWKS_MAX_AGE_MS, type PublicJwk, startCall } from '@colonnade/contracts';

/** A public key, and the one algorithm it is for. */
export type VerifyKey = { alg: 'EdDSA' | 'ES256'; publicKey: KeyObject };

export type Jwks = { issuer: string; keys: readonly PublicJwk[] };

export type KeySet = {
  /** `iss` of workloads' tokens. @throws ColonnadeError `kms_unavailable` when it was never read */
  issuer(): Promise<string>;
  /**
   * The public key with this id, or undefined when the KMS knows none.
   * @throws ColonnadeError `kms_unavailable` when the keys were never read, or an unknown one cannot be looked for
   */
  find(kid: string | undefined): Promise<VerifyKey | undefined>;
  /** All there are, as they are published. @throws ColonnadeError `kms_unavailable` */
  all(): Promise<Jwks>;
  /** Rises whenever the keys were read anew. */
  readonly generation: number;
};

export type KeySetOptions = {
  fetchKeys: (call: Call) => Promise<Jwks>;
  /** An unknown kid makes the keys be read again, but not more often than this. */
  cooldownMs?: number;
  /** Older keys are read again at the next use; when that fails the old ones serve on. */
  maxAgeMs?: number;
  fetchTimeoutMs?: number;
};

/** The public keys of identities, read from crypto-kms when they are needed, and kept. */
export function createKeySet(options: KeySetOptions): KeySet {
  const { fetchKeys, cooldownMs = 5000, maxAgeMs = JWKS_MAX_AGE_MS, fetchTimeoutMs = 1000 } = options;
  let known: { jwks: Jwks; keys: ReadonlyMap<string, VerifyKey> } | undefined;
  let generation = 0;
  let readAtMs = Number.NEGATIVE_INFINITY;
  let triedAtMs = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  const read = async (): Promise<void> => {
    triedAtMs = performance.now();
    const jwks = await fetchKeys(startCall(fetchTimeoutMs));
    known = { jwks, keys: new Map(jwks.keys.map((jwk) => [jwk.kid, importKey(jwk)])) };
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
  const refresh = async (isUnknown: boolean): Promise<void> => {
    const isOld = performance.now() - readAtMs > maxAgeMs;
    const mayTry = reading !== undefined || performance.now() - triedAtMs > cooldownMs;
    if ((isOld || isUnknown) && mayTry) await readShared().catch(isUnknown ? unavailable : () => {});
  };
  const get = async () => {
    if (known === undefined) await readShared().catch(unavailable);
    return known ?? unavailable(undefined);
  };

  return {
    issuer: async () => (await get()).jwks.issuer,
    async all() {
      await refresh(known === undefined);
      return (await get()).jwks;
    },
    async find(kid) {
      if (kid === undefined) return undefined;
      const { keys } = await get();
      await refresh(!keys.has(kid));
      return known?.keys.get(kid);
    },
    get generation() {
      return generation;
    },
  };
}

function importKey(jwk: PublicJwk): VerifyKey {
  return { alg: jwk.alg, publicKey: createPublicKey({ format: 'jwk', key: { ...jwk } }) };
}

function unavailable(thrown: unknown): never {
  throw new ColonnadeError('kms_unavailable', 'the keys of identities cannot be read', { cause: thrown });
}
