import { showDeadLetters } from '../../shared/dead-letters.ts';
import { defineCommand } from '../../table/command.ts';

export const eventsDead = defineCommand({
  path: 'events dead',
  summary: 'show what services outside have published and Colonnade has refused, with the reason',
  details:
    'The dead letters of the stream EVENTS_DEAD, oldest first, as the NATS user "operator": when, which service, why, and the Audit-ID of the request, whose record says who and from where. With --json the event is there too, in base64: its beginning, and without its data where a schema of the service marks something writeOnly. Of each service the newest 200 are kept.',
  options: { service: { value: 'NAME', help: 'only of this one' } },
  examples: [
    ['events dead', 'all of them'],
    ['events dead --service shop --json', 'of one service, with the events'],
  ],
  run: (session, { options }) =>
    showDeadLetters(session, 'EVENTS_DEAD', {
      of: 'service',
      only: options.service,
      endOf: ({ audit_id }) => audit_id ?? '-',
    }),
});
