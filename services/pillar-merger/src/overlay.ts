import type { UnsavedChange } from '@colonnade/contracts';
import type { MinionRecord, PillarRecord } from '@colonnade/estate-store';
import type { EstateView } from './estate-view.ts';

/** What an explanation supposes beside what is stored. */
export type Supposed = {
  changes?: readonly UnsavedChange[] | undefined;
  /** Memberships of the minion, instead of those it has. */
  collections?: readonly string[] | undefined;
};

/** A record as a change would leave it, by the position of the change. Its value stays with who asked. */
export type UnsavedRecord = PillarRecord & { change: number };

/** The estate as it would be; nothing of the view itself is changed. */
export function overlayView(view: EstateView, { changes = [], collections }: Supposed): EstateView {
  const byScope = Map.groupBy(changes.entries(), ([, { pillarenv }]) => pillarenv);
  return {
    ...view,
    minion: (master, id) => supposeMember(view.minion(master, id), collections),
    scope: (pillarenv) => (byScope.get(pillarenv) ?? []).reduce(applyChange, view.scope(pillarenv)),
  };
}

export function isUnsaved(record: PillarRecord): record is UnsavedRecord {
  return 'change' in record;
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
  const nobody = { createdBy: '', updatedBy: '', createdAtMs: 0, updatedAtMs: 0, tick: 0 };
  const kept = stored ?? { pid: newPid(index), ...nobody };
  return { ...kept, tgtType, tgtId, pillarenv, name, isSecret, value: null, change: index };
}

/** The pid a record has in the estate. */
export function savedPid(record: PillarRecord): string | null {
  return isUnsaved(record) && record.pid === newPid(record.change) ? null : record.pid;
}

function newPid(index: number): string {
  return `unsaved ${index}`;
}
