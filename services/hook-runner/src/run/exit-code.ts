import type { HookStatus } from '@colonnade/contracts';

/** How a process ended: exactly one of the two is there. */
export type ProcessEnd = { code: number | null; signal: NodeJS.Signals | null };

/**
 * Reads the end of a hook (seed 002): 0 success, 1–31 error, 32–63 warning, 64–255 reserved and until further notice an
 * error; so is a signal. An error stops the hooks after it, a warning does not.
 */
export function judgeEnd({ code, signal }: ProcessEnd): { status: HookStatus; reason: string } {
  if (signal !== null) return { status: 'error', reason: `ended by ${signal}` };
  if (code === 0) return { status: 'ok', reason: 'exit code 0' };
  if (code === null) return { status: 'unknown', reason: 'ended without an exit code' };
  if (code >= 1 && code <= 31) return { status: 'error', reason: `exit code ${code}` };
  if (code >= 32 && code <= 63) return { status: 'warning', reason: `exit code ${code}` };
  return { status: 'error', reason: `exit code ${code}, which is reserved` };
}
