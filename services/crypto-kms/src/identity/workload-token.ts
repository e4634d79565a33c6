import { randomUUID } from 'node:crypto';
import {
  ColonnadeError,
  WORKLOAD_AUDIENCE,
  WORKLOAD_LIFETIME_S,
  WORKLOAD_SKEW_S,
  WORKLOAD_TOKEN_TYP,
  type Workload,
  type WorkloadAlgorithm,
  workloadSubject,
} from '@colonnade/contracts';
import { createWorkloadCheck, type WorkloadIdentity } from '@colonnade/identity';
import { SignJWT } from 'jose';
import type { Revocations } from '../revocations.ts';
import type { SigningKeys } from './signing-keys.ts';

export type Issued = { token: string; jti: string; expires_at_ms: number };

export type IssueOptions = {
  /** Of the enrolment it came of. */
  sid?: string | undefined;
  /** For Colonnade itself unless given. */
  audience?: string | undefined;
  algorithm?: WorkloadAlgorithm | undefined;
  /** Of the token it is renewed from; the version that signs unless given. */
  gen?: number | undefined;
};

/** `gen`: version of the key its line of tokens began with, at most that of the key this one is signed with. */
type KnownWorkload = WorkloadIdentity & { gen: number };

export type WorkloadTokens = {
  issuer: string;
  issue(workload: Workload, options?: IssueOptions): Promise<Issued>;
  /**
   * Checks signature, claims and revocation of a token for Colonnade itself; whether its workload still is what it was, is
   * for `TaskView` to say. Renewed from one of a barred key it is refused as that one is: else whoever forged that would
   * renew it for ever.
   * @throws ColonnadeError `unauthorized`, `unavailable`
   */
  verify(token: string): Promise<KnownWorkload>;
};

/** Tokens of workloads (seed 003): they live for a quarter of an hour at most, and are renewed by who has one. */
export function createWorkloadTokens(parts: {
  keys: SigningKeys;
  issuer: string;
  revocations: Pick<Revocations, 'isRevoked'>;
  nowS: () => number;
}): WorkloadTokens {
  const { keys, issuer, revocations, nowS } = parts;
  const check = createWorkloadCheck({
    keys: { issuer: async () => issuer, find: (kid) => keys.find(kid) },
    audience: WORKLOAD_AUDIENCE,
    nowMs: () => nowS() * 1000,
  });
  return {
    issuer,
    async issue(workload, options = {}) {
      const { sid, audience, algorithm = 'EdDSA' } = options;
      const now = nowS();
      const exp = now + WORKLOAD_LIFETIME_S;
      const { alg, kid, privateKey, version } = await keys.signer(algorithm);
      const { gen = version } = options;
      const jti = randomUUID();
      const token = await new SignJWT({ colonnade: workload, gen, ...(sid === undefined ? {} : { sid }) })
        .setProtectedHeader({ alg, kid, typ: WORKLOAD_TOKEN_TYP })
        .setIssuer(issuer)
        .setSubject(workloadSubject(workload))
        .setAudience(audience ?? WORKLOAD_AUDIENCE)
        .setIssuedAt(now)
        // A verifier whose clock is a little behind would refuse it for its first seconds.
        .setNotBefore(now - WORKLOAD_SKEW_S)
        .setExpirationTime(exp)
        .setJti(jti)
        .sign(privateKey);
      return { token, jti, expires_at_ms: exp * 1000 };
    },
    async verify(token) {
      const { identity, key } = await check(token);
      if (identity.sid !== undefined && revocations.isRevoked(identity.sid))
        throw new ColonnadeError('unauthorized', 'the identity is refused: its enrolment was revoked');
      const gen = Math.min(identity.gen ?? key.version, key.version);
      if (gen < keys.minVersion())
        throw new ColonnadeError('unauthorized', 'the identity is refused: the key it comes of was barred');
      return { ...identity, gen };
    },
  };
}
