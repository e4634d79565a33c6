import { type BusUser, ColonnadeError } from '@colonnade/contracts';
import { nkeyAuthenticator, nkeys } from '@nats-io/transport-node';

/** An Ed25519 key of one NATS user. The server knows only the public key, so its configuration holds no secret. */
export type UserNkey = {
  /** `SU…`, base32: what the user keeps in a file of mode 0600. */
  seed: string;
  /** `U…`, base32: what the server's configuration names. */
  publicKey: string;
};

export function createUserNkey(): UserNkey {
  const pair = nkeys.createUser();
  return { seed: Buffer.from(pair.getSeed()).toString(), publicKey: pair.getPublicKey() };
}

/** @throws ColonnadeError `misconfigured` when it is no seed of a user nkey; the text of the seed is not in the error */
export function readUserNkey(seed: string): UserNkey {
  let publicKey: string | undefined;
  try {
    publicKey = nkeys.fromSeed(Buffer.from(seed)).getPublicKey();
  } catch {
    // Below, with how it should look.
  }
  if (publicKey?.startsWith('U')) return { seed, publicKey };
  throw new ColonnadeError(
    'misconfigured',
    'the nkey seed is none of a NATS user: it begins with SU; "colonnade bus creds USER" makes one',
  );
}

/** Signs the server's nonce; the seed never leaves the process. @throws ColonnadeError `misconfigured` */
export function authenticateWith(seed: string): ReturnType<typeof nkeyAuthenticator> {
  return nkeyAuthenticator(Buffer.from(readUserNkey(seed).seed));
}

/** What `renderNatsConfig` takes. */
export function publicKeysOf(nkeys: Readonly<Record<BusUser, UserNkey>>): Record<BusUser, string> {
  const entries = Object.entries(nkeys).map(([user, { publicKey }]) => [user, publicKey]);
  return Object.fromEntries(entries) as Record<BusUser, string>;
}
