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
import { createWorkloadVerifier, type WorkloadIdentity } from '@colonnade/identity';
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
};

export type WorkloadTokens = {
  issuer: string;
  issue(workload: Workload, options?: IssueOptions): Promise<Issued>;
  /**
   * Checks signature, claims and revocation of a token for Colonnade itself; whether its workload still is what it was, is
   * for `TaskView` to say.
   * @throws ColonnadeError `unauthorized`
   */
  verify(token: string): Promise<WorkloadIdentity>;
};

/** Tokens of workloads (seed 003): they live for a quarter of an hour at most, and are renewed by who has one. */
export function createWorkloadTokens(parts: {
  keys: SigningKeys;
  issuer: string;
  revocations: Pick<Revocations, 'isRevoked'>;
  nowS: () => number;
}): WorkloadTokens {
  const { keys, issuer, revocations, nowS } = parts;
  const verify = createWorkloadVerifier({
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
      const { alg, kid, privateKey } = await keys.signer(algorithm);
      const jti = randomUUID();
      const token = await new SignJWT({ colonnade: workload, ...(sid === undefined ? {} : { sid }) })
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
      const identity = await verify(token);
      if (identity.sid !== undefined && revocations.isRevoked(identity.sid))
        throw new ColonnadeError('unauthorized', 'the identity is refused: its enrolment was revoked');
      return identity;
    },
  };
}
