import type { ErrorCode } from '@colonnade/contracts';

const ADVICE: Partial<Record<ErrorCode, string>> = {
  unauthorized: 'log in again: colonnade login',
  forbidden: 'ask for a token whose role allows this; "colonnade whoami" shows yours',
  not_found: 'look for it with the list command of its kind',
  already_exists: 'change the one that is there, or choose another name',
  conflict: 'read it again, and see what stands in the way',
  precondition_failed: 'it has changed since it was read: read it again, then repeat the command',
  secret_immutable: 'a secret is changed with "colonnade pillar replace"',
  rate_limited: 'wait a minute',
  too_large: 'see the limits: colonnade limits',
  internal: 'the log of the service has the details, under the id of the request',
  unavailable: 'see what runs: colonnade status; then try again',
  kms_unavailable: 'crypto-kms does not answer: colonnade status',
  audit_unavailable:
    'NATS or its stream AUDIT takes no record, and without one nothing is done: colonnade status',
  bus_unavailable: 'check the address of NATS, the nkey of its user "operator", and that it runs',
};

/** What a person can do about an error. */
export function adviceFor(code: ErrorCode, path: readonly string[]): string {
  return ADVICE[code] ?? `see ${['colonnade', ...path, '--help'].join(' ')}`;
}
