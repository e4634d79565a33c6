import { readEvent } from '@colonnade/audit-log';
import type { StoredDeadLetter } from '@colonnade/bus';
import { fromPlain } from '@colonnade/value';
import { defineCommand } from '../../table/command.ts';
import { escapeLine } from '../../terminal/escape.ts';

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
  async run(session, { options }) {
    await using inspector = await session.inspector();
    let found = 0;
    for await (const one of inspector.deadLetters()) {
      if (options.backend !== undefined && one.backend !== options.backend) continue;
      found += 1;
      const { letter, backend, storedAt } = one;
      if (session.json) await session.out.json(fromPlain({ time: storedAt, backend, ...letter }));
      else await session.out.line(escapeLine(lineOf(one)));
    }
    if (found === 0) session.out.note('there are no dead letters');
  },
});

function lineOf({ letter, backend, storedAt }: StoredDeadLetter): string {
  const { reason, detail, seq, payload_b64 } = letter;
  return [storedAt, backend, reason, detail || '-', `seq ${seq}`, auditIdIn(payload_b64)].join('  ');
}

/** Of what may be no JSON, or no event, or cut. */
function auditIdIn(payload: string): string {
  const read = readEvent(Buffer.from(payload, 'base64'));
  return read.ok ? read.event.auditID : '-';
}
