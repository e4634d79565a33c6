import {
  type Call,
  ColonnadeError,
  type ErrorCode,
  type estateRegisterMinion,
  toColonnadeError,
} from '@colonnade/contracts';
import type { z } from 'zod';

type Request = z.output<typeof estateRegisterMinion.request>;

/** What the owner of the estate may answer that the master should hear as it is. */
const SAID: ReadonlySet<ErrorCode> = new Set([
  'unauthorized',
  'forbidden',
  'unknown_master',
  'unknown_minion',
]);

/**
 * Asks pillar-api, the one writer of the estate, to register a minion on its first request.
 * @throws ColonnadeError `unauthorized` | `unknown_master` | `unknown_minion`, or `unavailable` for everything else
 */
export async function registerMinion(
  request: { token: string; master: string; minionId: string },
  ask: (request: Request, call: Call) => Promise<unknown>,
  call: Call,
): Promise<void> {
  const { token, master, minionId } = request;
  try {
    await ask({ token, master, minion_id: minionId }, call);
  } catch (thrown) {
    const error = toColonnadeError(thrown);
    if (SAID.has(error.code)) throw error;
    throw new ColonnadeError('unavailable', 'the minion could not be registered', { cause: thrown });
  }
}
