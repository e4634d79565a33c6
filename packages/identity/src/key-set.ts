import type { KeyObject } from 'node:crypto';
import { createPublicKey } from 'node:crypto';
import {
  type Call,
  ColonnadeError,
  JWKS_MAX_AGE_MS,
  JWKS_TRUST_MS,
  type Jwks,
  type PublicJwk,
  startCall,
} from '@colonnade/contracts';

/** A public key, and the one algorithm it is for. */
export type VerifyKey = { alg: 'EdDSA' | 'ES256'; publicKey: KeyObject };

/** Keys are kept as long as they are the same: who compares them does not check every signature anew after each read. */
export type KeySet = {
  /** `iss` of workloads' tokens. @throws ColonnadeError `kms_unavailable` when it was never read */
  issuer(): Promise<string>;
  /**
   * The public key of identities with this id, or undefined when the KMS knows none.
   * @throws ColonnadeError `kms_unavailable` when the keys were never read or not for too long, or an unknown one cannot be looked for
   */
  find(kid: string | undefined): Promise<VerifyKey | undefined>;
  /** The same of masters' tokens. No age is too much: that key is never barred, and a token is taken back in the estate. */
  findOfMasters(kid: string | undefined): Promise<VerifyKey | undefined>;
  /** Those of identities, as they are published. @throws ColonnadeError `kms_unavailable` as find */
  published(): Promise<{ issuer: string; keys: readonly PublicJwk[] }>;
};

export type KeySetOptions = {
  fetchKeys: (call: Call) => Promise<Jwks>;
  /** An unknown kid makes the keys be read again, but not more often than this; so does a read that failed. */
  cooldownMs?: number;
  /** Older keys are read again before the next use, and those half as old beside it. When that fails the old ones serve on, for `trustMs` in all. */
  maxAgeMs?: number;
  trustMs?: number;
  fetchTimeoutMs?: number;
  /** A clock that nobody sets. */
  nowMs?: () => number;
};

type Known = {
  jwks: Jwks;
  identities: ReadonlyMap<string, VerifyKey>;
  masters: ReadonlyMap<string, VerifyKey>;
};

/** The public keys that crypto-kms signs with, read when they are needed, and kept. */
export function createKeySet(options: KeySetOptions): KeySet {
  const { fetchKeys, cooldownMs = 5000, maxAgeMs = JWKS_MAX_AGE_MS, fetchTimeoutMs = 1000 } = options;
  const { trustMs = JWKS_TRUST_MS, nowMs = () => performance.now() } = options;
  let known: Known | undefined;
  let readAtMs = Number.NEGATIVE_INFINITY;
  let triedAtMs = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  const read = async (): Promise<void> => {
    const startedMs = nowMs();
    triedAtMs = startedMs;
    known = importAll(await fetchKeys(startCall(fetchTimeoutMs)), known);
    readAtMs = startedMs;
  };
  // Everyone who needs the keys at the same time shares one read.
  const readShared = (): Promise<void> => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  };
  const refresh = async (isUnknown: boolean): Promise<void> => {
    const ageMs = nowMs() - readAtMs;
    const mayTry = reading !== undefined || nowMs() - triedAtMs > cooldownMs;
    // What could not be looked for a moment ago is not unknown.
    if (!mayTry && isUnknown && triedAtMs > readAtMs) unavailable(undefined);
    if (!mayTry) return;
    if (isUnknown) await readShared().catch(unavailable);
    else if (ageMs > maxAgeMs) await readShared().catch(() => {});
    // Under load nobody ever waits for it.
    else if (ageMs > maxAgeMs / 2) readShared().catch(() => {});
  };
  const get = async (): Promise<Known> => {
    if (known === undefined) await readShared().catch(unavailable);
    return known ?? unavailable(undefined);
  };
  const findIn = async (use: 'identities' | 'masters', kid: string | undefined) => {
    if (kid === undefined) return undefined;
    const before = await get();
    await refresh(!before[use].has(kid));
    return known?.[use].get(kid);
  };
  const checkAge = (): void => {
    if (nowMs() - readAtMs > trustMs) unavailable(undefined);
  };

  return {
    issuer: async () => (await get()).jwks.issuer,
    async find(kid) {
      const key = await findIn('identities', kid);
      checkAge();
      return key;
    },
    findOfMasters: (kid) => findIn('masters', kid),
    async published() {
      await get();
      await refresh(false);
      checkAge();
      const { jwks, identities } = await get();
      return { issuer: jwks.issuer, keys: jwks.keys.filter(({ kid }) => identities.has(kid)) };
    },
  };
}

/** A key that was known before stays the very object it was. */
function importAll(jwks: Jwks, before: Known | undefined): Known {
  const keyOf = (use: 'identities' | 'masters', jwk: PublicJwk): VerifyKey => {
    const key = importKey(jwk);
    const kept = before?.[use].get(jwk.kid);
    return kept?.alg === key.alg && kept.publicKey.equals(key.publicKey) ? kept : key;
  };
  const mapOf = (use: 'identities' | 'masters') => {
    const own = jwks.keys.filter(({ kid }) => jwks.master_kids.includes(kid) === (use === 'masters'));
    return new Map(own.map((jwk) => [jwk.kid, keyOf(use, jwk)]));
  };
  return { jwks, identities: mapOf('identities'), masters: mapOf('masters') };
}

function importKey(jwk: PublicJwk): VerifyKey {
  return { alg: jwk.alg, publicKey: createPublicKey({ format: 'jwk', key: { ...jwk } }) };
}

function unavailable(cause: unknown): never {
  throw new ColonnadeError('kms_unavailable', 'the keys of identities cannot be read', { cause });
}
