import { createHash } from 'node:crypto';
import { canonicalText } from '@colonnade/value';
import type { PillarRecord } from '../../port.ts';
import { kidOf } from '../../rules/key-use.ts';
import { type Connection, openConnection } from '../connection.ts';
import { shortHash } from './fields.ts';
import { type Judgement, judge, type Misfit } from './judge.ts';
import { createMeet, type MissingTargets } from './neighbours.ts';
import { type AdoptOptions, type AdoptPlace, openPlace } from './place.ts';

export type AdoptionPlan = {
  /** Whether the documents themselves become pillars of the estate, or copies of them do. */
  inPlace: boolean;
  /** Documents in the collection, and how many of them are pillars of the estate already. */
  documents: number;
  adopted: number;
  fits: number;
  misfits: {
    count: number;
    /** How often each reason was found. */
    reasons: Partial<Record<Misfit, number>>;
    /** The first of them; a person finds the others by mending these. */
    first: readonly { id: string; misfits: readonly Misfit[] }[];
  };
  /** Records the pillars hang on that will be made: minions as `master/id`, collections with their owners. */
  missing: {
    masters: readonly string[];
    minions: readonly string[];
    collections: readonly { id: string; owner: string }[];
  };
  /** Secrets that fit, by the key they are sealed under: crypto-kms must have each, or their scopes cannot be merged. */
  kids: Readonly<Record<string, number>>;
  /** Root pillars that keep another `tgt_id` than `root`: it is part of what their secrets are sealed under. */
  otherRoots: number;
  /** Of everything that was looked at; `adopt` wants it as the word that this plan is meant. */
  confirm: string;
};

const FIRST_MISFITS = 100;

/**
 * Looks at a collection of Salt.Box 0.2.0 and at the estate, and changes nothing. An estate need not be there yet.
 * @throws ColonnadeError `unavailable` | `misconfigured`
 */
export async function planAdoption(options: AdoptOptions): Promise<AdoptionPlan> {
  await using connection = openConnection(options);
  const { plan } = await connection.use(() =>
    makePlan(connection, openPlace(connection, options, Date.now())),
  );
  return plan;
}

/**
 * The plan, on a connection that is open.
 * @returns also a hash of each record that fits, so that nothing else is adopted
 */
export async function makePlan(
  connection: Connection,
  place: AdoptPlace,
): Promise<{ plan: AdoptionPlan; confirmed: Set<string> }> {
  await place.check();
  const missing: MissingTargets = { masters: new Set(), minions: new Set(), collections: new Map() };
  const meet = createMeet(connection, place.inPlace, missing);
  const count = createCount(place);
  for await (const chunk of place.read()) {
    const fresh = chunk.filter((document) => !place.isAdopted(document));
    count.adopted(chunk.length - fresh.length);
    const judged = fresh.map((document) => judge(document, place));
    const records = judged.flatMap((one) => ('record' in one ? [one.record] : []));
    const met = new Map((await meet(records)).map((meeting, i) => [records[i], meeting]));
    for (const one of judged) {
      const meeting = 'record' in one ? met.get(one.record) : undefined;
      if (meeting?.isAdopted === true) count.adopted(1);
      else count.judged(one, 'record' in one ? (meeting?.misfits ?? []) : one.misfits);
    }
  }
  const { confirmed, ...counted } = count.result();
  const wanted = listMissing(missing);
  const plan = { inPlace: place.inPlace, ...counted, missing: wanted, confirm: count.digest(wanted) };
  return { plan, confirmed };
}

function createCount({ names, atMs }: AdoptPlace) {
  const hash = createHash('sha256').update(JSON.stringify(names));
  const reasons: Partial<Record<Misfit, number>> = {};
  const first: { id: string; misfits: readonly Misfit[] }[] = [];
  const counts = { documents: 0, adopted: 0, fits: 0, otherRoots: 0 };
  const kids = new Map<string, number>();
  const confirmed = new Set<string>();
  let misfitCount = 0;
  const fits = (record: PillarRecord) => {
    counts.fits += 1;
    confirmed.add(recordHash(record, atMs));
    if (record.tgtType === 'root' && record.tgtId !== 'root') counts.otherRoots += 1;
    const kid = kidOf(record.value);
    if (kid !== undefined) kids.set(kid, (kids.get(kid) ?? 0) + 1);
  };
  return {
    adopted(found: number): void {
      counts.documents += found;
      counts.adopted += found;
    },
    judged(one: Judgement, misfits: readonly Misfit[]): void {
      counts.documents += 1;
      const { id } = one;
      hash.update(JSON.stringify([id, misfits, 'record' in one ? recordText(one.record, atMs) : '']));
      if (misfits.length === 0 && 'record' in one) {
        fits(one.record);
        return;
      }
      misfitCount += 1;
      for (const reason of misfits) reasons[reason] = (reasons[reason] ?? 0) + 1;
      if (first.length < FIRST_MISFITS) first.push({ id, misfits });
    },
    result: () => ({
      ...{ ...counts, confirmed, kids: Object.fromEntries([...kids].sort()) },
      misfits: { count: misfitCount, reasons, first },
    }),
    digest: (missing: AdoptionPlan['missing']) => hash.update(JSON.stringify(missing)).digest('hex'),
  };
}

/** All of what is adopted; the time that stands in for a missing one (`atMs`) is another in each plan. */
export function recordText(record: PillarRecord, atMs: number): string {
  const { pid, tgtType, tgtId, pillarenv, name, value, isSecret, createdBy, updatedBy } = record;
  const times = [record.createdAtMs, record.updatedAtMs].map((ms) => (ms === atMs ? null : ms));
  const place = [pid, tgtType, tgtId, pillarenv, name];
  return JSON.stringify([...place, canonicalText(value), isSecret, createdBy, updatedBy, ...times]);
}

export function recordHash(record: PillarRecord, atMs: number): string {
  return shortHash(recordText(record, atMs));
}

function listMissing({ masters, minions, collections }: MissingTargets): AdoptionPlan['missing'] {
  return {
    masters: [...masters].sort(),
    minions: [...minions].sort(),
    collections: [...collections]
      .map(([id, owner]) => ({ id, owner }))
      .sort((a, b) => (a.id < b.id ? -1 : 1)),
  };
}
