import { fromPlain } from '@colonnade/value';
import { readPlace } from '../../shared/place.ts';
import { defineCommand } from '../../table/command.ts';
import { createProgress } from '../../terminal/progress.ts';

export const storeCopy = defineCommand({
  path: 'store copy',
  summary: 'copy an estate whole into an empty file or database, and compare both',
  details:
    'Works on the stores themselves: stop what writes to the estate first; that it was written to meanwhile is noticed. A copy that is cut short leaves an empty file, or a database that no service opens: begin again before anything is started on it.',
  options: {
    from: {
      value: 'URL',
      required: true,
      help: 'the estate: sqlite:///path or mongodb://host:port/database',
    },
    to: { value: 'URL', required: true, help: 'the empty place' },
    'from-user': { value: 'NAME', help: 'user of MongoDB there' },
    'from-password-file': { value: 'FILE', help: 'file (0600) with its password' },
    'to-user': { value: 'NAME', help: 'user of MongoDB there' },
    'to-password-file': { value: 'FILE', help: 'file (0600) with its password' },
    'auth-database': { value: 'NAME', help: 'database that knows the users (default: admin)' },
    'ca-file': { value: 'FILE', help: 'CA of MongoDB; with it TLS is spoken' },
  },
  examples: [
    [
      'store copy --from sqlite:///var/lib/colonnade/estate.sqlite --to mongodb://db-1:27017/colonnade',
      'to MongoDB',
    ],
    [
      'store copy --from mongodb://db-1:27017/colonnade --to sqlite:///var/lib/colonnade/copy.sqlite',
      'and back',
    ],
  ],
  async run({ out, json }, { options }) {
    const shared = { authDatabase: options['auth-database'], caFile: options['ca-file'] };
    const from = await readPlace('from', {
      ...{ url: options.from, user: options['from-user'], passwordFile: options['from-password-file'] },
      ...shared,
    });
    const to = await readPlace('to', {
      ...{ url: options.to, user: options['to-user'], passwordFile: options['to-password-file'] },
      ...shared,
    });
    using progress = createProgress();
    const { copyStore } = await import('@colonnade/estate-store');
    const report = await copyStore(from, to, {
      onProgress: (table, rows) => progress.say(`${table}: ${rows} rows`),
    });
    progress[Symbol.dispose]();
    if (json) return await out.json(fromPlain(report));
    await out.fields([
      ['from', `tick ${report.from.tick}, incarnation ${report.from.incarnation}`],
      ['to', `tick ${report.to.tick}, incarnation ${report.to.incarnation}`],
      ...Object.entries(report.tables).map(
        ([name, { rows, sha256 }]) => [name, `${rows} rows, ${sha256}`] as const,
      ),
    ]);
  },
});
