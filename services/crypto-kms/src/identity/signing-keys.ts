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

/** A signing key, and the version it is derived from. */
type VersionKey = SigningKey & { version: number };

/** The keys of workloads' tokens: of each version one of each algorithm. */
export type SigningKeys = {
  /** @throws ColonnadeError `key_not_configured` */
  signer(alg: WorkloadAlgorithm): Promise<VersionKey>;
  /**
   * The public key with this id, as long as a token signed with it can be valid.
   * @throws ColonnadeError `unavailable`: what other replicas have decided cannot be read
   */
  find(kid: string | undefined): Promise<Pick<VersionKey, 'alg' | 'publicKey' | 'version'> | undefined>;
  /**
   * What verifiers need: the versions that sign, that will sign, and that have signed what may still be valid.
   * @throws as find
   */
  jwks(): Promise<PublicJwk[]>;
  /** What comes of older versions is refused. */
  minVersion(): number;
};

/** How long after a version has signed its last token it is still shown, milliseconds. */
const SHOWN_AFTER_MS = (WORKLOAD_LIFETIME_S + 60 * WORKLOAD_SKEW_S) * 1000;
/** How old what another replica has barred may be here, milliseconds. */
const READ_AGAIN_MS = 1000;

/** @param keyring undefined where there is no root key: then there are no identities, and everything says so */
export function createSigningKeys(keyring: Keyring | undefined, nowMs: () => number = Date.now): SigningKeys {
  const derived = new Map<string, Promise<readonly [VersionKey, VersionKey]>>();
  const ofKid = (kid: string, version: number, key: KeyObject) => {
    const known = derived.get(kid) ?? deriveBoth(version, key);
    derived.set(kid, known);
    return known;
  };
  const readAgain = keyring === undefined ? undefined : readEvery(keyring, READ_AGAIN_MS);
  const shown = async (): Promise<VersionKey[]> => {
    if (keyring === undefined) return [];
    await readAgain?.();
    const versions = keyring.versions().filter((one, at, all) => isShown(one, all.slice(at + 1), nowMs()));
    const keys = versions.map(async ({ kid, version }) => {
      const key = keyring.find(kid)?.key;
      return key === undefined ? [] : ofKid(kid, version, key);
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
      const version = keyring.versions().find((one) => one.kid === kid)?.version as number;
      const [ed25519, p256] = await ofKid(kid, version, key);
      return alg === 'EdDSA' ? ed25519 : p256;
    },
    find: async (kid) => (await shown()).find((one) => one.kid === kid),
    jwks: async () => (await shown()).map(({ jwk }) => jwk),
    minVersion: () => keyring?.minVersion() ?? 1,
  };
}

async function deriveBoth(version: number, key: KeyObject): Promise<readonly [VersionKey, VersionKey]> {
  const [ed25519, p256] = await Promise.all([deriveEd25519(key), deriveP256(key)]);
  return [
    { ...ed25519, version },
    { ...p256, version },
  ];
}

/** Reads the keyring unless that was done a moment ago; all who ask meanwhile share one reading. */
function readEvery(keyring: Keyring, everyMs: number): () => Promise<void> {
  let readAtMs = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;
  const read = async (): Promise<void> => {
    const startedMs = performance.now();
    await keyring.refresh();
    readAtMs = startedMs;
  };
  return async () => {
    if (performance.now() - readAtMs < everyMs) return;
    reading ??= read().finally(() => {
      reading = undefined;
    });
    await reading;
  };
}

/** `later`: the versions after this one; from the first use of any of them on this one has signed nothing. */
function isShown(one: KeyVersion, later: readonly KeyVersion[], nowMs: number): boolean {
  if (one.state === 'destroyed') return false;
  return nowMs < Math.min(...later.map((next) => next.active_from_ms)) + SHOWN_AFTER_MS;
}
