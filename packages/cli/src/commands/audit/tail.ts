import { createMatcher, followLog, listReadable, readEvent } from '@colonnade/audit-log';
import { usageError } from '../../exit-codes.ts';
import { eventLine, LOG_OPTION, logPath, QUERY_OPTIONS, readQuery } from '../../shared/audit-query.ts';
import { defineCommand } from '../../table/command.ts';
import { escapeLine } from '../../terminal/escape.ts';

export const auditTail = defineCommand({
  path: 'audit tail',
  summary: 'show the last records of the audit log, and those that come',
  details: 'Goes on over rotation, until Ctrl-C. With --json each record is printed as it stands in the log.',
  options: {
    ...LOG_OPTION,
    ...QUERY_OPTIONS,
    lines: { value: 'N', help: 'so many of the last records first (default: 10)' },
    once: { help: 'end then, instead of waiting for more' },
  },
  examples: [
    ['audit tail --log audit.log --verb delete', 'deletions as they happen'],
    ['audit tail --log audit.log --lines 100 --once', 'the last hundred'],
  ],
  async run({ out, env, json, signal }, { options }) {
    const last = options.lines ?? '10';
    if (!/^\d{1,6}$/u.test(last)) throw usageError(`--lines: "${last}" is no number`);
    const matches = createMatcher(readQuery(options, Date.now()));
    const wanted = (line: string) => {
      const read = readEvent(Buffer.from(line));
      return read.ok && matches(read.event) ? read.event : undefined;
    };
    const follow = !options.once;
    const settings = {
      last: Number(last),
      follow,
      signal,
      matches: (line: string) => wanted(line) !== undefined,
    };
    const log = logPath(options, env);
    await listReadable(log);
    for await (const line of followLog(log, settings)) {
      const event = wanted(line);
      if (event !== undefined) await out.line(json ? line : escapeLine(eventLine(event)));
    }
    signal.throwIfAborted();
  },
});
