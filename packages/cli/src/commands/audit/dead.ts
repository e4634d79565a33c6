import { readEvent } from '@colonnade/audit-log';
import { showDeadLetters } from '../../shared/dead-letters.ts';
import { defineCommand } from '../../table/command.ts';

export const auditDead = defineCommand({
  path: 'audit dead',
  summary: 'show what a backend of the audit could never take, with the reason',
  details:
    'The dead letters of the stream AUDIT_DEAD, oldest first, as the NATS user "operator": when, which backend, why, the sequence in AUDIT, and the Audit-ID where the record has one. With --json the record itself is there too, in base64. Nothing removes them: when the stream is full, the file stops at the next one.',
  options: {
    backend: { value: 'NAME', choices: ['file', 'webhook', 'ingest'], help: 'only of this one' },
  },
  examples: [
    ['audit dead', 'all of them'],
    ['audit dead --backend webhook --json', 'what the webhook has refused, with the records'],
  ],
  run: (session, { options }) =>
    showDeadLetters(session, 'AUDIT_DEAD', {
      of: 'backend',
      only: options.backend,
      endOf: ({ seq, payload_b64 }) => `seq ${seq}  ${auditIdIn(payload_b64)}`,
    }),
});

/** Of what may be no JSON, or no event, or cut. */
function auditIdIn(payload: string): string {
  const read = readEvent(Buffer.from(payload, 'base64'));
  return read.ok ? read.event.auditID : '-';
}
