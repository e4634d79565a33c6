import { findEvents, type Skipped } from '@colonnade/audit-log';
import { EXIT } from '../../exit-codes.ts';
import {
  eventLine,
  LOG_OPTION,
  logPath,
  QUERY_OPTIONS,
  readQuery,
  skippedNote,
} from '../../shared/audit-query.ts';
import { defineCommand } from '../../table/command.ts';
import { escapeLine } from '../../terminal/escape.ts';
import { createProgress } from '../../terminal/progress.ts';

export const auditFind = defineCommand({
  path: 'audit find',
  summary: 'find records in the audit log and its rotated files, oldest first',
  details:
    'With --json each record is printed as it stands in the log. What the journal beside the log does not vouch for is left out, with a note: exit code 8.',
  options: { ...LOG_OPTION, ...QUERY_OPTIONS },
  examples: [
    ['audit find --log audit.log --user ann --verb reveal --since 7d', 'what she has revealed this week'],
    ['audit find --log audit.log --resource pillars --name motd --json', 'all about one pillar'],
  ],
  async run({ out, env, json, signal }, { options }) {
    using progress = createProgress();
    let found = 0;
    let skipped = false;
    const onSkipped = (what: Skipped) => {
      skipped = true;
      out.note(skippedNote(what));
    };
    const query = readQuery(options, Date.now());
    for await (const { file, line, event } of findEvents(logPath(options, env), query, { onSkipped })) {
      signal.throwIfAborted();
      found += 1;
      if (!out.isTerminal) progress.say(`${found} records, now in ${file}`);
      await out.line(json ? line : escapeLine(eventLine(event)));
    }
    return skipped ? EXIT.differs : EXIT.ok;
  },
});
