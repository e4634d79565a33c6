import type { ApiClient } from '@colonnade/embedded';
import { fromPlain, type Value } from '@colonnade/value';
import { ABSENT, type History, type ValueId, violate } from '../history.ts';
import { FIXED_START, MEMBERSHIP, ROAM, ROAMER, readValue } from '../workload/estate.ts';
import type { StreamedEvent } from './streams.ts';

/** Nobody who saw it said which of the secrets this is. */
export const UNKNOWN_SECRET = '?';

/** What a register was from this tick on. */
export type Version = {
  tick: number;
  id: ValueId;
  pid: string;
  op: 'create' | 'update' | 'delete' | 'set';
};

/** What the estate says of itself: every version of every register, by tick. */
export type Truth = ReadonlyMap<string, readonly Version[]>;

/** What a register is before anything is written to it in a run. */
export function startOf(key: string): ValueId {
  if (key === MEMBERSHIP) return ROAM[0];
  return key === 'tree tuned' ? FIXED_START : ABSENT;
}

/** Reads the history of every pillar that an answer, an event or the list has named. */
export async function readTruth(
  api: ApiClient,
  history: History,
  events: readonly StreamedEvent[],
): Promise<Truth> {
  const keyOf = new Map(history.keyOf);
  for (const { type, data } of events) {
    const key = type.startsWith('pillar.') ? keyOfPlace(data.pillarenv, data.name) : undefined;
    if (key !== undefined) keyOf.set(String(data.pid), key);
  }
  for (const pillar of await listAll(api)) {
    const key = keyOfPlace(pillar.pillarenv, pillar.name);
    if (key !== undefined) keyOf.set(String(pillar.pid), key);
  }
  const truth = new Map<string, Version[]>();
  for (const [pid, key] of keyOf) {
    const versions = await readVersions(api, pid, history);
    truth.set(key, [...(truth.get(key) ?? []), ...versions]);
  }
  truth.set(MEMBERSHIP, membershipOf(events));
  for (const versions of truth.values()) versions.sort((a, b) => a.tick - b.tick);
  return truth;
}

/** The register of a pillar's place; undefined for those that never change. */
function keyOfPlace(pillarenv: unknown, name: unknown): string | undefined {
  const env = String(pillarenv);
  if (env === 'base') return `root ${name}`;
  const [, minion, master] = /^minion_id:(.+);master:(.+)$/u.exec(env) ?? [];
  if (minion !== undefined) return `${master}/${minion} ${name}`;
  return env.startsWith('collection:tree;') ? `tree ${name}` : undefined;
}

async function listAll(api: ApiClient): Promise<Record<string, Value>[]> {
  const answer = await api.call('POST', '/pillars/list', fromPlain({ limit: 500 }));
  return (answer.value as unknown as { items: Record<string, Value>[] }).items;
}

type ShownVersion = { op: 'create' | 'update' | 'delete'; value: Value; is_secret: boolean; clock: bigint };

async function readVersions(api: ApiClient, pid: string, history: History): Promise<Version[]> {
  const versions: Version[] = [];
  for (let cursor = ''; ; ) {
    const query = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const answer = await api.call('GET', `/pillars/${pid}/versions?limit=500${query}`);
    const page = answer.value as unknown as { items: ShownVersion[]; next_cursor: string | null };
    for (const { op, value, is_secret, clock } of page.items) {
      const written = is_secret ? (history.secretOf.get(pid) ?? UNKNOWN_SECRET) : readValue(value, undefined);
      if (written === undefined) violate(history, 'torn value', `a version of ${pid}`);
      versions.push({ tick: Number(clock), id: op === 'delete' ? ABSENT : (written ?? ABSENT), pid, op });
    }
    if (page.next_cursor === null) return versions;
    cursor = page.next_cursor;
  }
}

/** Minions have no history of versions; their events hold the memberships. */
function membershipOf(events: readonly StreamedEvent[]): Version[] {
  const [master, minion] = ROAMER.split('/');
  const own = events.filter(
    ({ type, data }) => type.startsWith('minion.') && data.master === master && data.id === minion,
  );
  return own.map(({ tick, data }) => {
    const [id = ABSENT] = data.collections as string[];
    return { tick, id, pid: ROAMER, op: 'set' };
  });
}
