import type { CloudEvent, Touched } from '@colonnade/contracts';
import { zTouched } from '@colonnade/contracts';
import { z } from 'zod';

const zPillarData = z.object({ tgt_type: z.string(), tgt_id: z.string(), pillarenv: z.string() });
const zMinionData = z.object({ master: z.string(), id: z.string() });
const zCollectionData = z.object({ id: z.string() });

/**
 * Whom an event of the estate touches; undefined: nobody. What masters list and what inventories tell is in no pillar, and
 * pillars of tasks are in no policy. What cannot be told concerns everybody.
 */
export function touchedBy(event: CloudEvent): Touched | undefined {
  try {
    return readTouched(event);
  } catch {
    return { kind: 'all' };
  }
}

function readTouched({ type, data }: CloudEvent): Touched | undefined {
  const [, aggregate, what] = /^colonnade\.([a-z]+)\.([a-z-]+)\.v\d+$/u.exec(type) ?? [];
  // Two places are concerned, and the folders of the old one may have to go.
  if (what === 'moved') return { kind: 'all' };
  if (aggregate === 'collection') {
    return zTouched.parse({ kind: 'collection', id: zCollectionData.parse(data).id });
  }
  if (aggregate === 'minion') {
    if (what?.startsWith('inventory-')) return undefined;
    const { master, id } = zMinionData.parse(data);
    return zTouched.parse({ kind: 'minion', master, id });
  }
  return aggregate === 'pillar' ? touchedByPillar(zPillarData.parse(data)) : undefined;
}

function touchedByPillar({ tgt_type, tgt_id, pillarenv }: z.infer<typeof zPillarData>): Touched | undefined {
  if (tgt_type === 'root') return { kind: 'all' };
  if (tgt_type === 'collection') return zTouched.parse({ kind: 'collection', id: tgt_id });
  if (tgt_type !== 'minion') return undefined;
  // `minion_id:{id};master:{master}`: neither holds a separator.
  const master = pillarenv.slice(pillarenv.lastIndexOf(';master:') + ';master:'.length);
  return zTouched.parse({ kind: 'minion', master, id: tgt_id });
}
