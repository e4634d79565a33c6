import { findEvents } from '@colonnade/audit-log';
import { eventLine, LOG_OPTION, logPath, QUERY_OPTIONS, readQuery } from '../../shared/audit-query.ts';
import { defineCommand } from '../../table/command.ts';
import { escapeLine } from '../../terminal/escape.ts';
import { createProgress } from '../../terminal/progress.ts';

export const auditFind = defineCommand({
  path: 'audit find',
  summary: 'find records in the audit log and its rotated files, oldest first',
  details: 'With --json each record is printed as it stands in the log.',
  options: { ...LOG_OPTION, ...QUERY_OPTIONS },
  examples: [
    ['audit find --log audit.log --user ann --verb reveal --since 7d', 'what she has revealed this week'],
    ['audit find --log audit.log --resource pillars --name motd --json', 'all about one pillar'],
  ],
  async run({ out, env, json, signal }, { options }) {
    using progress = createProgress();
    let found = 0;
    for await (const { file, line, event } of findEvents(
      logPath(options, env),
      readQuery(options, Date.now()),
    )) {
      signal.throwIfAborted();
      found += 1;
      if (!out.isTerminal) progress.say(`${found} records, now in ${file}`);
      await out.line(json ? line : escapeLine(eventLine(event)));
    }
  },
});
