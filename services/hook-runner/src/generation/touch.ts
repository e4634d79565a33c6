import { type CloudEvent, cloudEventType, parseEnv, type Touched, zTouched } from '@colonnade/contracts';
import { z } from 'zod';
import type { MinionName } from '../store/minion-name.ts';

const IMPORTED = cloudEventType('estate.imported');
const DELETED = cloudEventType('minion.deleted');
const MOVED = cloudEventType('minion.moved');
/** What users saved for a template: in no policy, as the pillars of tasks. */
const DEFAULTS = 'task_tpl:';
const zPillarData = z.object({ tgt_type: z.string(), tgt_id: z.string(), pillarenv: z.string() });
const zPillarMovedData = zPillarData.extend({ from: zPillarData });
const zMinionData = z.object({ master: z.string(), id: z.string() });
const zMovedData = zMinionData.extend({ from_master: z.string() });
const zCollectionData = z.object({ id: z.string() });
export const EVERYBODY: readonly Touched[] = [{ kind: 'all' }];
const zImportData = z.object({ scopes: z.array(z.string()) });

/**
 * Whom an event of the estate touches; none: nobody. What masters list and what inventories tell is in no pillar, and
 * pillars of tasks are in no policy. What cannot be told concerns everybody.
 */
export function touchedBy(event: CloudEvent): readonly Touched[] {
  try {
    if (event.type === IMPORTED) return touchedByScopes(zImportData.parse(event.data).scopes);
    return readTouched(event);
  } catch {
    return EVERYBODY;
  }
}

/** The minion whose folder may go when the hooks of the event have ended: it was deleted, or has moved from there. */
export function goneBy({ type, data }: Pick<CloudEvent, 'type' | 'data'>): MinionName | undefined {
  if (type === DELETED) return zMinionData.safeParse(data).data;
  if (type !== MOVED) return undefined;
  const moved = zMovedData.safeParse(data).data;
  return moved === undefined ? undefined : { master: moved.from_master, id: moved.id };
}

function readTouched({ type, data }: CloudEvent): readonly Touched[] {
  const [, aggregate, what] = /^colonnade\.([a-z]+)\.([a-z-]+)\.v\d+$/u.exec(type) ?? [];
  if (aggregate === 'collection') {
    return [zTouched.parse({ kind: 'collection', id: zCollectionData.parse(data).id })];
  }
  if (aggregate === 'minion') {
    if (what?.startsWith('inventory-')) return [];
    // Of one that has moved the old place is nobody's now: see `goneBy`.
    const { master, id } = zMinionData.parse(data);
    return [zTouched.parse({ kind: 'minion', master, id })];
  }
  if (aggregate !== 'pillar') return [];
  if (what !== 'moved') return touchedByPillar(zPillarData.parse(data));
  const { from, ...to } = zPillarMovedData.parse(data);
  const touched = [...touchedByPillar(from), ...touchedByPillar(to)];
  return touched.some(({ kind }) => kind === 'all') ? EVERYBODY : touched;
}

function touchedByPillar({ tgt_type, tgt_id, pillarenv }: z.infer<typeof zPillarData>): readonly Touched[] {
  if (tgt_type === 'root') return EVERYBODY;
  if (tgt_type === 'collection') return [zTouched.parse({ kind: 'collection', id: tgt_id })];
  if (tgt_type !== 'minion') return [];
  // `minion_id:{id};master:{master}`: neither holds a separator.
  const master = pillarenv.slice(pillarenv.lastIndexOf(';master:') + ';master:'.length);
  return [zTouched.parse({ kind: 'minion', master, id: tgt_id })];
}

/** An import tells the scopes of its pillars. Of any other scope it cannot be told. */
function touchedByScopes(scopes: readonly string[]): readonly Touched[] {
  const touched = scopes.flatMap((scope): Touched[] => {
    const env = parseEnv(scope);
    if (env.kind === 'collection') return [zTouched.parse({ kind: 'collection', id: env.collectionId })];
    if (env.kind === 'minion')
      return [zTouched.parse({ kind: 'minion', master: env.master, id: env.minionId })];
    return env.kind === 'task' || scope.startsWith(DEFAULTS) ? [] : [{ kind: 'all' }];
  });
  return touched.some(({ kind }) => kind === 'all') ? EVERYBODY : touched;
}
