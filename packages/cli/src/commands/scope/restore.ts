import type { Value, ValueObject } from '@colonnade/value';
import { EXIT } from '../../exit-codes.ts';
import type { Session } from '../../session.ts';
import { confirm, YES_OPTION } from '../../shared/conditions.ts';
import { momentOf } from '../../shared/time.ts';
import { asList, asObject, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { createProgress } from '../../terminal/progress.ts';

export const scopeRestore = defineCommand({
  path: 'scope restore',
  summary: 'bring a whole scope back to a point in time, after showing what that changes',
  details:
    'While something stands in the way nothing is restored, and the exit code is 8; --pid leaves the rest out. Up to 200 pillars are one transaction; a larger scope is restored in such parts. Cut in between, the same command with the clock that it showed goes on: what is as it was already is no change.',
  args: { pillarenv: { help: 'the scope: base, or as pillars show it' } },
  options: {
    at: {
      value: 'WHEN',
      required: true,
      help: 'a clock, or a time: RFC 3339, or a span such as 90m, 12h, 7d',
    },
    pid: { value: 'PID', repeat: true, help: 'only this pillar; several times' },
    'dry-run': { help: 'only show it' },
    ...YES_OPTION,
  },
  examples: [
    ['scope restore base --at 42 --dry-run', 'what the root was at clock 42'],
    ['scope restore "collection:shop;user:ann" --at 12h', 'as it was twelve hours ago'],
  ],
  async run(session, { args, options }) {
    const at = momentOf('at', options.at);
    const body: ValueObject = {
      ...{ pillarenv: args.pillarenv, at },
      ...(options.pid.length === 0 ? {} : { pids: [...options.pid] }),
    };
    const preview = await readPreview(session, body);
    const blocked = asList(preview.conflicts).length > 0;
    if (!session.json || options['dry-run'] || blocked) await showPlan(session, preview);
    if (blocked) return EXIT.differs;
    if (options['dry-run']) return EXIT.ok;
    await confirm(`restore ${args.pillarenv} as shown`, options.yes);
    const done = await restoreParts(session, { ...body, at: preview.at ?? at }, preview);
    if (session.json) await session.out.json(done);
    else session.out.note(`restored, clock ${textOf(done.clock)}`);
    return EXIT.ok;
  },
});

const LISTS = ['create', 'update', 'delete', 'conflicts'] as const;

/** All parts as one. */
async function readPreview(session: Session, body: ValueObject): Promise<ValueObject> {
  using progress = createProgress();
  const ask = { ...body, dry_run: true };
  const path = '/scopes/restore';
  let all = asObject((await session.api().call('POST', path, ask)).value);
  while (typeof all.next_cursor === 'string') {
    progress.say(`${countOf(all)} changes found`);
    const next = { ...ask, at: all.at ?? null, cursor: all.next_cursor };
    all = join(all, asObject((await session.api().call('POST', path, next)).value));
  }
  return all;
}

/** Part by part, each one on the state that the one before left. @throws what stopped it, having told how to go on */
async function restoreParts(session: Session, body: ValueObject, preview: ValueObject): Promise<ValueObject> {
  using progress = createProgress();
  const total = countOf(preview);
  const one = async (etag: Value | undefined, more: ValueObject) => {
    const headers = { 'if-match': textOf(etag) };
    return asObject(
      (await session.api().call('POST', '/scopes/restore', { ...body, ...more }, headers)).value,
    );
  };
  let all = await one(preview.etag, {});
  try {
    while (typeof all.next_cursor === 'string') {
      progress.say(`${countOf(all)} of ${total} restored`);
      all = join(all, await one(all.etag, { cursor: all.next_cursor }));
    }
  } catch (thrown) {
    session.out.note(
      `${countOf(all)} of ${total} are restored; the same command with --at ${textOf(body.at)} goes on`,
    );
    throw thrown;
  }
  return all;
}

function countOf(part: ValueObject): number {
  return ['create', 'update', 'delete'].reduce((sum, what) => sum + asList(part[what]).length, 0);
}

function join(all: ValueObject, part: ValueObject): ValueObject {
  const lists = LISTS.map((what) => [what, [...asList(all[what]), ...asList(part[what])]]);
  const unchanged = BigInt(textOf(all.unchanged)) + BigInt(textOf(part.unchanged));
  return { ...all, ...part, ...Object.fromEntries(lists), unchanged };
}

async function showPlan({ out, json }: Session, preview: ValueObject): Promise<void> {
  if (json) return await out.json(preview);
  const rows = (what: string, list: Value | undefined) =>
    asList(list).map((one) => {
      const { name, pid, version, reason } = asObject(one);
      return { what, name: textOf(name), pid: textOf(pid), why: textOf(reason ?? version) };
    });
  const all = ['create', 'update', 'delete'].flatMap((what) => rows(what, preview[what]));
  const table = out.table<(typeof all)[number]>([
    { title: 'WHAT', of: (row) => row.what },
    { title: 'NAME', of: (row) => row.name },
    { title: 'PID', of: (row) => row.pid },
    { title: 'VERSION', of: (row) => row.why },
  ]);
  await table.add([...all, ...rows('IN THE WAY', preview.conflicts)]);
  out.note(`as at clock ${textOf(preview.at)}; ${textOf(preview.unchanged)} stay as they are`);
}
