import type { ValueObject } from '@colonnade/value';
import { makeToken, SAVE_OPTION } from '../../shared/one-time.ts';
import { countOf } from '../../shared/pages.ts';
import { defineCommand } from '../../table/command.ts';

export const masterEnrol = defineCommand({
  path: 'master enrol',
  summary: 'make a one-time token with which a host of a master gets an identity',
  details:
    "Bring it to the host; the engine colonnade_identity uses it up. Delete its id among the master's tokens to take the identity back.",
  args: { id: { help: 'logical master' } },
  options: {
    ...SAVE_OPTION,
    'expires-in': {
      value: 'SECONDS',
      help: 'how long it waits for the host (default: an hour; at most a week)',
    },
  },
  examples: [['master enrol salt-east --save enrol', 'into a file']],
  async run(session, { args, options }) {
    const { save, 'expires-in': expires } = options;
    const body: ValueObject =
      expires === undefined ? {} : { expires_in_s: BigInt(countOf('expires-in', expires)) };
    const path = `/masters/${encodeURIComponent(args.id)}/enrolments`;
    await makeToken(session, save, () => session.api().call('POST', path, body));
  },
});
