import { hash } from 'node:crypto';
import {
  ColonnadeError,
  LIMITS,
  WORKLOAD_LIFETIME_S,
  WORKLOAD_SKEW_S,
  WORKLOAD_TOKEN_TYP,
  type Workload,
  workloadSubject,
  zWorkloadClaims,
} from '@colonnade/contracts';
import { type JWTPayload, jwtVerify } from 'jose';
import { isCompactToken } from './compact.ts';
import type { VerifyKey } from './key-set.ts';
import { explainRefusal } from './refusal.ts';

/** Whose a token is, by its signature. Whether that workload still is one, its state says. */
export type WorkloadIdentity = {
  workload: Workload;
  sub: string;
  jti: string;
  /** The enrolment it came of; undefined for a task's. */
  sid: string | undefined;
  /** The key it is signed with. */
  kid: string;
  /** Version of the key the first of its line was signed with, as it says itself. */
  gen: number | undefined;
  expiresAtMs: number;
};

/** Where public keys come from: `KeySet`, or the KMS's own. */
export type VerifyKeys<K extends VerifyKey = VerifyKey> = {
  issuer(): Promise<string>;
  find(kid: string | undefined): Promise<K | undefined>;
};

/** What a verifier goes by. */
export type VerifyOptions<K extends VerifyKey = VerifyKey> = {
  keys: VerifyKeys<K>;
  audience: string;
  nowMs?: () => number;
};

/** Tokens whose signature is not checked again, at most. */
const REMEMBERED = 1000;

/**
 * A verifier for tokens of workloads (seed 003). Algorithm and key belong together: a key is good only for its own
 * algorithm, so neither `none` nor a public key taken for a shared secret gets anywhere. A signature is checked once; that
 * its key is there and its time not over, every time.
 * @returns a function that throws ColonnadeError `unauthorized`, or `kms_unavailable` when there are no keys
 */
export function createWorkloadVerifier(options: VerifyOptions): (token: string) => Promise<WorkloadIdentity> {
  const check = createWorkloadCheck(options);
  return async (token) => (await check(token)).identity;
}

/** As createWorkloadVerifier, for who asks more of the key: it is given as it was found for this check. */
export function createWorkloadCheck<K extends VerifyKey>(
  options: VerifyOptions<K>,
): (token: string) => Promise<Verified<K>> {
  const { keys, audience, nowMs = Date.now } = options;
  // By digest: the memory of this process should not be a list of tokens.
  const verified = new Map<string, Verified<K>>();
  return async (token) => {
    if (token.length > LIMITS.workloadTokenChars) throw refuse('is too long');
    if (!isCompactToken(token)) throw refuse('is no token of a workload');
    const digest = hash('sha256', token, 'base64');
    const known = verified.get(digest);
    const again = known && (await checkAgain(keys, known, nowMs()));
    if (again !== undefined) return again;
    verified.delete(digest);
    const fresh = await verifySignature(keys, audience, token, nowMs());
    if (verified.size >= REMEMBERED) verified.delete(verified.keys().next().value as string);
    verified.set(digest, fresh);
    return fresh;
  };
}

/** A token whose signature was checked before. */
type Verified<K extends VerifyKey> = { identity: WorkloadIdentity; key: K };

/** Its key is still there, and its time not over; when it was let in, its time had begun, and clocks go forward. */
async function checkAgain<K extends VerifyKey>(
  keys: VerifyKeys<K>,
  { identity, key: before }: Verified<K>,
  nowMs: number,
): Promise<Verified<K> | undefined> {
  if (nowMs >= identity.expiresAtMs) return undefined;
  const key = await keys.find(identity.kid);
  return key?.publicKey === before.publicKey ? { identity, key: key as K } : undefined;
}

async function verifySignature<K extends VerifyKey>(
  keys: VerifyKeys<K>,
  audience: string,
  token: string,
  nowMs: number,
): Promise<Verified<K>> {
  let used: { kid: string; key: K } | undefined;
  const keyFor = async ({ kid, alg }: { kid?: string; alg?: string }) => {
    const key = kid === undefined ? undefined : await keys.find(kid);
    if (key === undefined) throw refuse('is signed with an unknown key');
    if (key.alg !== alg) throw refuse('is signed with another algorithm than its key is for');
    used = { kid: kid as string, key };
    return key.publicKey;
  };
  try {
    const issuer = await keys.issuer();
    const { payload } = await jwtVerify(token, keyFor, {
      ...{ algorithms: ['EdDSA', 'ES256'], typ: WORKLOAD_TOKEN_TYP },
      ...{ issuer, audience, requiredClaims: ['sub', 'iat', 'nbf', 'exp', 'jti'] },
      ...{ clockTolerance: WORKLOAD_SKEW_S, currentDate: new Date(nowMs) },
    });
    if (used === undefined) throw new ColonnadeError('internal', 'a token was verified without a key');
    const { kid, key }: { kid: string; key: K } = used;
    return { identity: identityOf(payload, kid), key };
  } catch (thrown) {
    throw explainRefusal(thrown, 'the identity', 'is no token of a workload');
  }
}

/** By its form; whether it is one, the verifier says. An API token has no dots. */
export function looksLikeWorkloadToken(token: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/u.test(token) && headerTyp(token) === WORKLOAD_TOKEN_TYP;
}

function headerTyp(token: string): unknown {
  try {
    const header: unknown = JSON.parse(
      Buffer.from(token.split('.', 1)[0] ?? '', 'base64url').toString('utf8'),
    );
    return (header as { typ?: unknown } | null)?.typ;
  } catch {
    return undefined;
  }
}

function identityOf(payload: JWTPayload, kid: string): WorkloadIdentity {
  const claims = zWorkloadClaims.safeParse(payload);
  if (!claims.success) throw refuse('has a wrong or missing claim');
  const { sub, jti, sid, gen, iat, exp, colonnade: workload } = claims.data;
  if (sub !== workloadSubject(workload)) throw refuse('has a subject that is not its workload');
  if (exp - iat > WORKLOAD_LIFETIME_S) throw refuse('lives longer than a token may');
  return { workload, sub, jti, sid, kid, gen, expiresAtMs: exp * 1000 };
}

function refuse(why: string): ColonnadeError {
  return new ColonnadeError('unauthorized', `the identity ${why}`);
}
