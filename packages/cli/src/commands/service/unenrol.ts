import { confirm, YES_OPTION } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { servicePath } from './options.ts';

export const serviceUnenrol = defineCommand({
  path: 'service unenrol',
  summary: 'take one enrolment of a service back; its identity ends at once',
  args: { id: { help: 'service' }, enrolment: { help: 'id of the enrolment, as "service get" shows it' } },
  options: YES_OPTION,
  examples: [['service unenrol shop 0198f2d4-1c57-7b1e-9d6c-0a7c1f0f8a11 --yes', 'without asking']],
  async run(session, { args, options }) {
    await confirm(`take back enrolment ${args.enrolment} of service ${args.id}`, options.yes);
    const path = `${servicePath(args.id)}/enrolments/${encodeURIComponent(args.enrolment)}`;
    const answer = await session.api().call('DELETE', path);
    await show(session, answer.value ?? { id: args.enrolment }, allFields);
  },
});
