import { ColonnadeError } from '@colonnade/contracts';
import type { Mutation, PillarRecord } from '../../port.ts';
import { packBatch } from '../../rules/batch.ts';
import { CHANGE_TICKS_KEPT } from '../../rules/clock.ts';
import { kidOf, refuseClosed } from '../../rules/key-use.ts';
import { applyBatch } from '../apply-batch.ts';
import { openConnection } from '../connection.ts';
import { fromPillar, type PillarDocument, type VersionDocument } from '../documents.ts';
import { migrate } from '../migrate.ts';
import { packStoredValue } from '../stored-value.ts';
import { type Group, keepChanges } from '../transaction.ts';
import { createWriteQueue, type WriteQueue } from '../write-queue.ts';
import { type ForeignDocument, idText } from './fields.ts';
import { judge } from './judge.ts';
import { type AdoptOptions, type AdoptPlace, openPlace } from './place.ts';
import { type AdoptionPlan, makePlan, recordHash, recordText } from './plan.ts';

export type AdoptionReport = { adopted: number; leftOut: number };

export type ConfirmedAdoption = AdoptOptions & {
  /** `confirm` of the plan that is meant. */
  confirm: string;
  /** Adopts into another collection what fits, and leaves out the rest. */
  leaveOut?: boolean;
};

type Fitting = { id: unknown; record: PillarRecord };

/** A write of the adoption waits this long for other writers, milliseconds. */
const WRITE_TIMEOUT_MS = 30_000;
/** Targets made in one batch. */
const TARGETS = 100;

/**
 * Makes pillars of the estate out of what `planAdoption` found to fit, and the records they hang on; the estate is made
 * when there is none. In place, documents get the fields they lack and keep all they have. Each has its first version
 * then. One that is cut short is planned and confirmed again, and goes on.
 * @throws ColonnadeError `conflict` (not what was confirmed, or something does not fit) | `unavailable` | `misconfigured`
 */
export async function adopt(options: ConfirmedAdoption): Promise<AdoptionReport> {
  await using connection = openConnection(options);
  const place = openPlace(connection, options, Date.now());
  const { plan, confirmed } = await connection.use(() => makePlan(connection, place));
  checkPlan(plan, options);
  await connection.use(() => migrate(connection, { overForeignPillars: place.inPlace }));
  const queue = createWriteQueue(connection, {
    changeTicksKept: CHANGE_TICKS_KEPT,
    writeTimeoutMs: WRITE_TIMEOUT_MS,
  });
  await using _closed = { [Symbol.asyncDispose]: () => queue.close() };
  await makeTargets(queue, plan.missing, place);
  let adopted = 0;
  for await (const chunk of place.read()) adopted += await adoptChunk(queue, place, chunk, confirmed);
  if (confirmed.size > 0) throw changed();
  return { adopted, leftOut: plan.misfits.count };
}

function checkPlan(plan: AdoptionPlan, { confirm, leaveOut = false }: ConfirmedAdoption): void {
  if (plan.confirm !== confirm) {
    throw new ColonnadeError('conflict', 'the collection is not as it was when it was confirmed: plan again');
  }
  if (plan.misfits.count === 0 || (leaveOut && !plan.inPlace)) return;
  // In place they would stay in the collection, and a scope that holds one could not be read.
  const why = plan.inPlace ? 'mend or remove them first' : 'mend them, or leave them out';
  throw new ColonnadeError('conflict', `${plan.misfits.count} documents do not fit: ${why}`);
}

async function makeTargets(
  queue: WriteQueue,
  missing: AdoptionPlan['missing'],
  { by, atMs }: AdoptPlace,
): Promise<void> {
  const expect = 'absent';
  const mutations: Mutation[] = [
    ...missing.collections.map(({ id, owner }): Mutation => {
      return { kind: 'collection.put', expect, record: { id, name: id, parentId: undefined, owner } };
    }),
    ...missing.masters.map((id): Mutation => {
      const record = { id, envs: [], tokenIds: [], onUnknownMinion: 'register' } as const;
      return { kind: 'master.put', expect, record };
    }),
    ...missing.minions.map((key): Mutation => {
      const [master = '', id = ''] = key.split('/');
      return { kind: 'minion.put', expect, record: { master, id, collections: [], registeredBy: by } };
    }),
  ];
  for (let from = 0; from < mutations.length; from += TARGETS) {
    const part = mutations.slice(from, from + TARGETS);
    const batch = packBatch({ mutations: part, events: [], by, atMs }, packStoredValue);
    await queue.run((group) => applyBatch(group, batch, Date.now()));
  }
}

/**
 * Takes the hashes of what it adopts out of `confirmed`.
 * @returns how many became pillars
 */
async function adoptChunk(
  queue: WriteQueue,
  place: AdoptPlace,
  chunk: readonly ForeignDocument[],
  confirmed: Set<string>,
): Promise<number> {
  const fresh = chunk.filter((document) => !place.isAdopted(document));
  const chosen = fresh.flatMap((document): Fitting[] => {
    const one = judge(document, place);
    const isMeant = 'record' in one && confirmed.delete(recordHash(one.record, place.atMs));
    return isMeant ? [{ id: document._id, record: one.record }] : [];
  });
  if (place.inPlace && chosen.length < fresh.length) throw changed();
  if (chosen.length > 0) await queue.run((group) => write(group, place, chosen));
  return chosen.length;
}

async function write(group: Group, place: AdoptPlace, chosen: readonly Fitting[]): Promise<void> {
  refuseClosed(
    chosen.flatMap(({ record }) => kidOf(record.value) ?? []),
    group.clock.closedKids,
  );
  group.tick += 1;
  const { tables, within, tick, appended } = group;
  const documents = chosen.map(({ record }) =>
    fromPillar({ ...record, tick }, packStoredValue(record.value)),
  );
  if (place.inPlace) await complete(group, place, chosen, documents);
  else await tables.pillars.insertMany(documents, within);
  for (const { _id, ...version } of documents) {
    appended.versions.push({ ...version, op: 'create', purged: false } as VersionDocument);
  }
  const scopes = new Set(chosen.map(({ record }) => `scope:${record.pillarenv}` as const));
  keepChanges(group, scopes);
}

/** Adds what the documents lack, provided that they still are what was judged. */
async function complete(
  { tables, within }: Group,
  place: AdoptPlace,
  chosen: readonly Fitting[],
  documents: readonly PillarDocument[],
): Promise<void> {
  const wanted = { _id: { $in: chosen.map(({ id }) => id) } } as object;
  const found = await tables.pillars.find(wanted, within).toArray();
  const now = new Map(found.map((one) => [idText(one._id), one as unknown as ForeignDocument]));
  const updates = chosen.map(({ id, record }, i) => {
    const document = now.get(idText(id));
    if (document === undefined || place.isAdopted(document)) throw changed();
    if (recordTextOf(document, place) !== recordText(record, place.atMs)) throw changed();
    const { _id, ...ours } = documents[i] as PillarDocument;
    const lacking = Object.entries(ours).filter(([name]) => (document[name] ?? undefined) === undefined);
    return { updateOne: { filter: { _id: id }, update: { $set: Object.fromEntries(lacking) } } };
  });
  await tables.pillars.bulkWrite(updates as never, within);
}

function recordTextOf(document: ForeignDocument, place: AdoptPlace): string {
  const one = judge(document, place);
  return 'record' in one ? recordText(one.record, place.atMs) : '';
}

function changed(): ColonnadeError {
  return new ColonnadeError('conflict', 'the collection changes while it is adopted: plan and confirm again');
}
