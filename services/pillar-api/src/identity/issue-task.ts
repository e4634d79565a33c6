import { type Call, type ColonnadeError, toColonnadeError, type zIdentityToken } from '@colonnade/contracts';
import type { z } from 'zod';
import type { Principal } from '../auth/authenticate.ts';
import type { Kms } from '../kms.ts';
import { viewTime } from '../views.ts';

type IdentityToken = z.output<typeof zIdentityToken>;

/** Has crypto-kms make a task's identity, with a grant of whoever asks: he is its owner. */
export async function issueTaskToken(
  kms: Pick<Kms, 'issueTask'>,
  principal: Pick<Principal, 'granted'>,
  task: { id: string; templateId: string },
  call: Call,
): Promise<IdentityToken> {
  return viewIssued(await kms.issueTask(principal, { task: task.id, template: task.templateId }, call));
}

/**
 * As issueTaskToken, for a task that is made and stays made: who cannot have an identity for it (an API token from before
 * there were any, a user of the issuer's, a KMS without a keyring) has none, and the task is read by the master as
 * before.
 */
export async function tryIssueTaskToken(
  ...[kms, principal, task, call]: Parameters<typeof issueTaskToken>
): Promise<{ token: IdentityToken | null; fault?: ColonnadeError }> {
  try {
    return { token: await issueTaskToken(kms, principal, task, call) };
  } catch (thrown) {
    return { token: null, fault: toColonnadeError(thrown) };
  }
}

/** What crypto-kms made, as HTTP shows it. */
export function viewIssued(issued: { token: string; jti: string; expires_at_ms: number }): IdentityToken {
  return { token: issued.token, jti: issued.jti, expires_at: viewTime(issued.expires_at_ms) };
}
