import { readFile } from 'node:fs/promises';
import { decode } from '@colonnade/contracts';
import type { AdoptFields, AdoptionPlan, AdoptOptions } from '@colonnade/estate-store';
import { fromPlain } from '@colonnade/value';
import { z } from 'zod';
import { EXIT, usageError } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { confirm, YES_OPTION } from '../shared/conditions.ts';
import { readPlace } from '../shared/place.ts';
import { defineCommand } from '../table/command.ts';

const OPTIONS = {
  store: { value: 'URL', required: true, help: 'the estate: mongodb://host:port/database' },
  user: { value: 'NAME', help: 'user of MongoDB' },
  'password-file': { value: 'FILE', help: 'file (0600) with its password' },
  'auth-database': { value: 'NAME', help: 'database that knows the user (default: admin)' },
  'ca-file': { value: 'FILE', help: 'CA of MongoDB; with it TLS is spoken' },
  by: { value: 'USER', required: true, help: 'who adopts: stands where a document does not say who made it' },
  'source-database': {
    value: 'NAME',
    help: 'database of the collection to adopt (default: the estate’s own)',
  },
  'source-collection': { value: 'NAME', help: 'the collection to adopt (default: pillars)' },
  fields: { value: 'FILE', help: 'JSON object: our field names to theirs, where they differ' },
  'leave-out': { help: 'adopt what fits and leave out the rest; not in place' },
  'dry-run': { help: 'show the plan and change nothing' },
  confirm: { value: 'WORD', help: 'confirm exactly this plan, as --dry-run printed it' },
  ...YES_OPTION,
} as const;

export const adoptCommand = defineCommand({
  path: 'adopt',
  summary: 'make pillars of the estate out of a collection of Salt.Box 0.2.0',
  details:
    'Shows a plan first: what fits, what does not and why, and which masters, minions and collections will be made. Nothing is changed until that plan is confirmed, and nothing if the collection is another by then. It works on the store itself: no event and no audit record tells of it, so ask for a generation afterwards (generation run --all). Exit code 8 when a dry run finds documents that do not fit.',
  options: OPTIONS,
  examples: [
    ['adopt --store mongodb://db-1:27017/saltbox --by ann --dry-run', 'the plan'],
    ['adopt --store mongodb://db-1:27017/saltbox --by ann --yes', 'the plan, and what it says'],
  ],
  async run(session, { options }) {
    const place = await readPlace('store', {
      ...{ url: options.store, user: options.user, passwordFile: options['password-file'] },
      ...{ authDatabase: options['auth-database'], caFile: options['ca-file'] },
    });
    if (place.kind !== 'mongodb')
      throw usageError('--store must be mongodb://…: the collection to adopt is there');
    const source = {
      ...(options['source-database'] === undefined ? {} : { database: options['source-database'] }),
      ...(options['source-collection'] === undefined ? {} : { collection: options['source-collection'] }),
    };
    const fields = options.fields === undefined ? {} : { fields: await readFields(options.fields) };
    const settings: AdoptOptions = { ...place, by: options.by, source, ...fields };
    const { adopt, planAdoption } = await import('@colonnade/estate-store');
    const plan = await planAdoption(settings);
    const dryRun = options['dry-run'];
    if (!session.json || dryRun) await showPlan(session, plan);
    if (dryRun) return plan.misfits.count === 0 ? EXIT.ok : EXIT.differs;
    const word = options.confirm ?? plan.confirm;
    if (options.confirm === undefined) await confirm(`adopt ${plan.fits} pillars as planned`, options.yes);
    const report = await adopt({ ...settings, confirm: word, leaveOut: options['leave-out'] });
    if (session.json) await session.out.json(fromPlain(report));
    else
      await session.out.fields([
        ['adopted', String(report.adopted)],
        ['left out', String(report.leftOut)],
      ]);
    return EXIT.ok;
  },
});

async function showPlan({ out, json }: Session, plan: AdoptionPlan): Promise<void> {
  if (json) return await out.json(fromPlain(plan));
  const { missing, misfits } = plan;
  const list = (names: readonly string[]) => (names.length === 0 ? '-' : names.join(', '));
  await out.fields([
    ['in place', plan.inPlace ? 'yes' : 'no, copies'],
    ['documents', String(plan.documents)],
    ['adopted already', String(plan.adopted)],
    ['fit', String(plan.fits)],
    ['do not fit', String(misfits.count)],
    ...Object.entries(misfits.reasons).map(([reason, count]) => [`  ${reason}`, String(count)] as const),
    ...misfits.first.map(({ id, misfits: why }) => [`  ${id}`, why.join(', ')] as const),
    ['masters to make', list(missing.masters)],
    ['minions to make', list(missing.minions)],
    ['collections to make', list(missing.collections.map(({ id, owner }) => `${id} (of ${owner})`))],
    ['sealed under', list(Object.entries(plan.kids).map(([kid, count]) => `${kid} (${count})`))],
    ['other root ids', String(plan.otherRoots)],
    ['confirm', plan.confirm],
  ]);
}

/** @throws ColonnadeError `misconfigured` | `bad_request` naming the field */
async function readFields(file: string): Promise<Partial<AdoptFields>> {
  const text = await readFile(file).catch((thrown: NodeJS.ErrnoException) => {
    throw usageError(`${file} cannot be read: ${thrown.code ?? thrown.message}`);
  });
  const { SEED_FIELDS } = await import('@colonnade/estate-store');
  const names = Object.keys(SEED_FIELDS).map((name) => [name, z.string().optional()]);
  return decode(z.strictObject(Object.fromEntries(names)), text) as Partial<AdoptFields>;
}
