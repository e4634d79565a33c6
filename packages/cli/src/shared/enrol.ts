import type { ValueObject } from '@colonnade/value';
import { defineCommand } from '../table/command.ts';
import { makeToken, SAVE_OPTION } from './one-time.ts';
import { countOf } from './pages.ts';

/** A command that makes the one-time token of a host of something. */
export function defineEnrol(what: {
  path: string;
  summary: string;
  details: string;
  /** What its argument names. */
  id: string;
  /** As the API's path calls those. */
  resource: string;
  example: string;
}) {
  const { path, summary, details, id, resource, example } = what;
  return defineCommand({
    ...{ path, summary, details },
    args: { id: { help: id } },
    options: {
      ...SAVE_OPTION,
      'expires-in': {
        value: 'SECONDS',
        help: 'how long it waits for the host (default: an hour; at most a week)',
      },
    },
    examples: [[`${path} ${example} --save enrol`, 'into a file']],
    async run(session, { args, options }) {
      const { save, 'expires-in': expires } = options;
      const body: ValueObject =
        expires === undefined ? {} : { expires_in_s: BigInt(countOf('expires-in', expires)) };
      const url = `/${resource}/${encodeURIComponent(args.id)}/enrolments`;
      await makeToken(session, save, () => session.api().call('POST', url, body));
    },
  });
}
