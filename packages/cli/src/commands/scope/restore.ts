import type { Value, ValueObject } from '@colonnade/value';
import { EXIT } from '../../exit-codes.ts';
import type { Session } from '../../session.ts';
import { confirm, YES_OPTION } from '../../shared/conditions.ts';
import { momentOf } from '../../shared/time.ts';
import { asList, asObject, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const scopeRestore = defineCommand({
  path: 'scope restore',
  summary: 'bring a whole scope back to a point in time, after showing what that changes',
  details:
    'All or nothing. While something stands in the way nothing is restored, and the exit code is 8; --pid leaves the rest out.',
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
    const api = session.api();
    const at = momentOf('at', options.at);
    const body: ValueObject = {
      ...{ pillarenv: args.pillarenv, at },
      ...(options.pid.length === 0 ? {} : { pids: [...options.pid] }),
    };
    const preview = asObject((await api.call('POST', '/scopes/restore', { ...body, dry_run: true })).value);
    const blocked = asList(preview.conflicts).length > 0;
    if (!session.json || options['dry-run'] || blocked) await showPlan(session, preview);
    if (blocked) return EXIT.differs;
    if (options['dry-run']) return EXIT.ok;
    await confirm(`restore ${args.pillarenv} as shown`, options.yes);
    const headers = { 'if-match': textOf(preview.etag) };
    const { value } = await api.call('POST', '/scopes/restore', { ...body, at: preview.at ?? at }, headers);
    if (session.json) await session.out.json(value ?? null);
    else session.out.note(`restored, clock ${textOf(asObject(value).clock)}`);
    return EXIT.ok;
  },
});

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
