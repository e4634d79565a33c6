import { type Fault, type LogPoint, listReadable, verifyLog } from '@colonnade/audit-log';
import { type AuditAnchor, ColonnadeError } from '@colonnade/contracts';
import { fromPlain } from '@colonnade/value';
import { EXIT } from '../../exit-codes.ts';
import type { Session } from '../../session.ts';
import { LOG_OPTION, logPath } from '../../shared/audit-query.ts';
import { defineCommand } from '../../table/command.ts';
import { createProgress } from '../../terminal/progress.ts';

export const auditVerify = defineCommand({
  path: 'audit verify',
  summary: 'walk the hash chain of the audit log, and compare it with its anchors',
  details:
    'Names the first line that was changed, removed, added or moved, a file that is gone, numbers that do not run on, and an anchor the log does not have: exit code 8; 0: whole, 3: there is no log. It says where the log begins and ends: older files may be gone only where a record of the sink says that it removed them. The anchors come from the stream AUDIT_ANCHORS, as the NATS user "operator"; without the bus whoever owns the host could have made the chain anew, and the result says so.',
  options: { ...LOG_OPTION, offline: { help: 'do not ask the bus for the anchors' } },
  examples: [
    ['audit verify --log audit.log', 'with the anchors of the bus'],
    ['audit verify --log audit.log --offline', 'a copy of the log on another host'],
  ],
  async run(session, { options }) {
    const file = logPath(options, session.env);
    using progress = createProgress();
    progress.say('reading the anchors');
    const anchors = options.offline ? undefined : await readAnchors(session);
    // Before the walk: the log goes on meanwhile, and may be ahead of the last anchor, never behind it.
    if (anchors === undefined || anchors.length === 0) await listReadable(file);
    progress.say(`walking the chain of ${file}`);
    const {
      lines,
      anchors: met,
      olderAnchors,
      withoutLog,
      begins,
      ends,
      fault,
    } = await verifyLog(file, anchors ?? []);
    progress[Symbol.dispose]();
    const checked = anchors === undefined ? null : met;
    if (session.json) {
      await session.out.json(
        fromPlain({
          ...{ lines, anchors: checked, older_anchors: checked === null ? null : olderAnchors },
          ...{ begins_after: begins ?? null, ends_with: ends ?? null },
          ...{ without_log: withoutLog, fault: fault ?? null },
        }),
      );
    } else {
      await session.out.fields([
        ['lines in their place', String(lines)],
        ['begins after', showPoint(begins)],
        ['ends with', showPoint(ends)],
        ['anchors that agree', checked === null ? 'not asked for' : String(checked)],
        ['anchors older than the log', checked === null ? 'not asked for' : String(olderAnchors)],
        ...withoutLog.map((name) => ['moved away or gone', name] as const),
        ['first fault', fault === undefined ? 'none' : describe(fault)],
      ]);
    }
    return fault === undefined ? EXIT.ok : EXIT.differs;
  },
});

function showPoint(point: LogPoint | undefined): string {
  return point === undefined ? '-' : `sequence ${point.seq}, ${point.time}`;
}

function describe({ what, file, line, seq, detail }: Fault): string {
  const where = `${what} in ${file}, line ${line}, sequence ${seq}`;
  return detail === undefined ? where : `${where}: ${detail}`;
}

/** Undefined where the bus cannot be asked: the chain alone is still worth walking. */
async function readAnchors(session: Session): Promise<AuditAnchor[] | undefined> {
  try {
    await using inspector = await session.inspector();
    return await inspector.anchors();
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError)) throw thrown;
    session.out.note(`the anchors are not compared: ${thrown.message}`);
    return undefined;
  }
}
