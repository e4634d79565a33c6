import { type Call, ColonnadeError, restartCall, type zMasterToken } from '@colonnade/contracts';
import type { z } from 'zod';
import type { Principal } from './auth/authenticate.ts';
import type { Kms } from './kms.ts';
import { viewTime } from './views.ts';

/** A year: a master's token is renewed by an admin. */
const DEFAULT_LIFETIME_S = 365 * 86_400;
const CLEANUP_BUDGET_MS = 2000;

/** Has crypto-kms make a token for a master, with the admin's grant. */
export async function issueToken(
  kms: Kms,
  principal: Principal,
  master: string,
  lifetimeS: number | undefined,
  call: Call,
): Promise<z.output<typeof zMasterToken>> {
  const asked = { master, lifetime_s: lifetimeS ?? DEFAULT_LIFETIME_S };
  const issued = await kms.issueMaster(principal, asked, call);
  return { jti: issued.jti, token: issued.token, expires_at: viewTime(issued.expires_at_ms) };
}

export async function revokeToken(kms: Kms, principal: Principal, jti: string, call: Call): Promise<void> {
  await kms.revokeIdentity(principal, jti, call);
}

/** Waits for the write that makes a new token count; when it fails, the token is taken back as well as can be. */
export async function revokeQuietly<T>(
  kms: Kms,
  principal: Principal,
  jti: string,
  call: Call,
  written: Promise<T>,
): Promise<T> {
  try {
    return await written;
  } catch (thrown) {
    // Nobody has seen the token, and no record lists it: left over, it is good for nothing.
    await revokeToken(kms, principal, jti, restartCall(CLEANUP_BUDGET_MS, call)).catch(() => {});
    throw thrown;
  }
}

/**
 * Of a deletion whose first step, at the KMS, is done: a change that came in between. What was revoked cannot be taken
 * back into use.
 */
export function asHalfDeleted(thrown: unknown, what: string, how: string): unknown {
  if (!(thrown instanceof ColonnadeError)) return thrown;
  if (thrown.code !== 'conflict' && thrown.code !== 'precondition_failed') return thrown;
  return new ColonnadeError('conflict', `${what}: ${thrown.message}. Read it again; ${how}`, {
    cause: thrown,
  });
}
