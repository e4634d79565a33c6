import type { KeyObject } from 'node:crypto';
import {
  ColonnadeError,
  type PublicJwk,
  WORKLOAD_LIFETIME_S,
  WORKLOAD_SKEW_S,
  type WorkloadAlgorithm,
} from '@colonnade/contracts';
import type { Keyring, KeyVersion } from '../keyring/keyring.ts';
import { deriveEd25519, deriveP256, type SigningKey } from './derive.ts';

/** The keys of workloads' tokens: of each version one of each algorithm. */
export type SigningKeys = {
  /** @throws ColonnadeError `key_not_configured` */
  signer(alg: WorkloadAlgorithm): Promise<SigningKey>;
  /** The public key with this id, as long as a token signed with it can be valid. */
  find(kid: string | undefined): Promise<{ alg: WorkloadAlgorithm; publicKey: KeyObject } | undefined>;
  /** What verifiers need: the versions that sign, that will sign, and that have signed what may still be valid. */
  jwks(): Promise<PublicJwk[]>;
};

/** How long after a version has signed its last token it is still shown, milliseconds. */
const SHOWN_AFTER_MS = (WORKLOAD_LIFETIME_S + 60 * WORKLOAD_SKEW_S) * 1000;

/** @param keyring undefined where there is no root key: then there are no identities, and everything says so */
export function createSigningKeys(keyring: Keyring | undefined, nowMs: () => number = Date.now): SigningKeys {
  const derived = new Map<string, Promise<readonly [SigningKey, SigningKey]>>();
  const ofKid = (kid: string, key: KeyObject) => {
    const known = derived.get(kid) ?? Promise.all([deriveEd25519(key), deriveP256(key)]);
    derived.set(kid, known);
    return known;
  };
  const shown = async (): Promise<SigningKey[]> => {
    if (keyring === undefined) return [];
    const versions = keyring.versions().filter((one, at, all) => isShown(one, all[at + 1], nowMs()));
    const keys = versions.map(async ({ kid }) => {
      const key = keyring.find(kid)?.key;
      return key === undefined ? [] : ofKid(kid, key);
    });
    return (await Promise.all(keys)).flat();
  };
  return {
    async signer(alg) {
      if (keyring === undefined)
        throw new ColonnadeError(
          'key_not_configured',
          'there are no identities of workloads without a keyring: start the KMS with KMS_ROOT_KEY_FILE',
        );
      const { kid, key } = keyring.active();
      const [ed25519, p256] = await ofKid(kid, key);
      return alg === 'EdDSA' ? ed25519 : p256;
    },
    find: async (kid) => (await shown()).find((one) => one.kid === kid),
    jwks: async () => (await shown()).map(({ jwk }) => jwk),
  };
}

/** `next`: the version that followed this one, from whose first use on this one has signed nothing. */
function isShown(one: KeyVersion, next: KeyVersion | undefined, nowMs: number): boolean {
  if (one.state === 'destroyed') return false;
  return next === undefined || nowMs < next.active_from_ms + SHOWN_AFTER_MS;
}
