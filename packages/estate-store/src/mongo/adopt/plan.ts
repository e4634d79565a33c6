import { createHash } from 'node:crypto';
import { canonicalText } from '@colonnade/value';
import type { PillarRecord } from '../../port.ts';
import { type Connection, openConnection } from '../connection.ts';
import { idText } from './fields.ts';
import { type Judgement, judge, type Misfit } from './judge.ts';
import { type MissingTargets, meetEstate } from './neighbours.ts';
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
  return await connection.use(() => makePlan(connection, openPlace(connection, options, Date.now())));
}

/** The plan, on a connection that is open. */
export async function makePlan(connection: Connection, place: AdoptPlace): Promise<AdoptionPlan> {
  const missing: MissingTargets = { masters: new Set(), minions: new Set(), collections: new Map() };
  const count = createCount();
  for await (const chunk of place.read()) {
    const fresh = chunk.filter((document) => !place.isAdopted(document));
    count.adopted(chunk.length - fresh.length);
    const judged = fresh.map((document) => judge(document, place));
    const records = judged.flatMap((one) => ('record' in one ? [one.record] : []));
    const met = new Map(
      (await meetEstate(connection, records, place.inPlace, missing)).map((found, i) => [records[i], found]),
    );
    for (const [i, one] of judged.entries()) {
      const misfits = 'record' in one ? (met.get(one.record) ?? []) : one.misfits;
      count.judged(idText(fresh[i]?._id), one, misfits);
    }
  }
  return {
    inPlace: place.inPlace,
    ...count.result(),
    missing: listMissing(missing),
    confirm: count.digest(),
  };
}

function createCount() {
  const hash = createHash('sha256');
  const reasons: Partial<Record<Misfit, number>> = {};
  const first: { id: string; misfits: readonly Misfit[] }[] = [];
  const counts = { documents: 0, adopted: 0, fits: 0, otherRoots: 0 };
  let misfitCount = 0;
  return {
    adopted(found: number): void {
      counts.documents += found;
      counts.adopted += found;
    },
    judged(id: string, one: Judgement, misfits: readonly Misfit[]): void {
      counts.documents += 1;
      hash.update(JSON.stringify([id, misfits, 'record' in one ? recordText(one.record) : '']));
      if (misfits.length === 0) {
        counts.fits += 1;
        if ('record' in one && one.record.tgtType === 'root' && one.record.tgtId !== 'root')
          counts.otherRoots += 1;
        return;
      }
      misfitCount += 1;
      for (const reason of misfits) reasons[reason] = (reasons[reason] ?? 0) + 1;
      if (first.length < FIRST_MISFITS) first.push({ id, misfits });
    },
    result: () => ({ ...counts, misfits: { count: misfitCount, reasons, first } }),
    digest: () => hash.digest('hex'),
  };
}

/** What is adopted; the time that stands in for a missing one is not part of it. */
export function recordText({
  pid,
  tgtType,
  tgtId,
  pillarenv,
  name,
  value,
  isSecret,
  createdBy,
}: PillarRecord): string {
  return JSON.stringify([pid, tgtType, tgtId, pillarenv, name, canonicalText(value), isSecret, createdBy]);
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
