import { ColonnadeError, type PastScope, type UnsavedChange } from '@colonnade/contracts';
import type { MinionRecord, PillarRecord } from '@colonnade/estate-store';
import type { EstateView } from './estate-view.ts';

/** What an explanation supposes beside what is stored. */
export type Supposed = {
  changes?: readonly UnsavedChange[] | undefined;
  /** Memberships of the minion, instead of those it has. */
  collections?: readonly string[] | undefined;
  /** Scopes as they once were; then no other scope is read. */
  past?: readonly PastScope[] | undefined;
};

/** A record as a change would leave it, by the position of the change. Its value stays with who asked. */
export type UnsavedRecord = PillarRecord & { change: number };

/**
 * The estate as it would be; nothing of the view itself is changed.
 * @throws ColonnadeError `unavailable` from `scope` when a past is supposed that lacks it: memberships have changed
 */
export function overlayView(view: EstateView, { changes = [], collections, past }: Supposed): EstateView {
  const scope = past === undefined ? view.scope : pastScopes(past);
  const byScope = Map.groupBy(changes.entries(), ([, { pillarenv }]) => pillarenv);
  return {
    ...view,
    minion: (master, id) => supposeMember(view.minion(master, id), collections),
    scope: (pillarenv) => (byScope.get(pillarenv) ?? []).reduce(applyChange, scope(pillarenv)),
  };
}

export function isUnsaved(record: PillarRecord): record is UnsavedRecord {
  return 'change' in record;
}

/** Who it was that wrote them, and when, decides nothing. */
const NOBODY = { createdBy: '', updatedBy: '', createdAtMs: 0, updatedAtMs: 0, tick: 0 };

function pastScopes(past: readonly PastScope[]): EstateView['scope'] {
  const scopes = new Map(past.map(({ pillarenv, pillars }) => [pillarenv, pillars]));
  return (pillarenv) => {
    const pillars = scopes.get(pillarenv);
    if (pillars === undefined) {
      throw new ColonnadeError('unavailable', 'memberships or collections have changed meanwhile');
    }
    return pillars.map(({ pid, tgt_type: tgtType, tgt_id: tgtId, name, is_secret: isSecret }) => {
      return { ...NOBODY, pid, tgtType, tgtId, pillarenv, name, isSecret, value: null };
    });
  };
}

function supposeMember(
  minion: MinionRecord | undefined,
  collections: readonly string[] | undefined,
): MinionRecord | undefined {
  return minion === undefined || collections === undefined ? minion : { ...minion, collections };
}

function applyChange(
  records: readonly PillarRecord[],
  [index, change]: [number, UnsavedChange],
): readonly PillarRecord[] {
  const isMeant = ({ tgtType, tgtId, name }: PillarRecord) =>
    tgtType === change.tgt_type && tgtId === change.tgt_id && name === change.name;
  const others = records.filter((record) => !isMeant(record));
  if (change.op === 'delete') return others;
  return [...others, unsavedRecord(index, change, records.find(isMeant))];
}

/** One that is there keeps its pid; a new one has none yet, and gets one that no record has. */
function unsavedRecord(
  index: number,
  change: UnsavedChange,
  stored: PillarRecord | undefined,
): UnsavedRecord {
  const { tgt_type: tgtType, tgt_id: tgtId, pillarenv, name, is_secret: isSecret } = change;
  const kept = stored ?? { pid: newPid(index), ...NOBODY };
  return { ...kept, tgtType, tgtId, pillarenv, name, isSecret, value: null, change: index };
}

/** The pid a record has in the estate. */
export function savedPid(record: PillarRecord): string | null {
  return isUnsaved(record) && record.pid === newPid(record.change) ? null : record.pid;
}

function newPid(index: number): string {
  return `unsaved ${index}`;
}
