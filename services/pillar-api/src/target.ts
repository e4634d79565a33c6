import {
  ColonnadeError,
  collectionTarget,
  minionTarget,
  type PillarCreate,
  type ResolvedTarget,
  ROOT_TGT_ID,
  rootTarget,
  taskTarget,
  taskTemplateTarget,
  zCollectionId,
  zMinionId,
} from '@colonnade/contracts';
import type { EstateStore } from '@colonnade/estate-store';

type Asked = Pick<PillarCreate, 'tgt_type' | 'tgt_id' | 'minion_id' | 'master' | 'collection_id'>;
type Lookup = Pick<EstateStore, 'getMaster' | 'getMinion' | 'getCollection' | 'getTask' | 'getTemplate'>;

/**
 * Seed 000, `_resolve_target`: tgt_id and pillarenv come from what the target is in the estate, whatever the client
 * sent as pillarenv. A target that is not in the estate is refused.
 * @param user whose defaults those of a template are
 * @throws ColonnadeError `unprocessable` | `unknown_master` | `unknown_minion`
 */
export async function resolveTarget(estate: Lookup, asked: Asked, user: string): Promise<ResolvedTarget> {
  switch (asked.tgt_type) {
    case 'root':
      return resolveRoot(asked);
    case 'minion':
      return resolveMinion(estate, asked);
    case 'collection':
      return resolveCollection(estate, asked);
    case 'task':
      return taskTarget(await requireTgtId(asked, 'task', (id) => estate.getTask(id)));
    case 'task_tpl':
      return taskTemplateTarget(await requireTgtId(asked, 'template', (id) => estate.getTemplate(id)), user);
  }
}

function resolveRoot(asked: Asked): ResolvedTarget {
  refuseFields(asked, ['minion_id', 'master', 'collection_id']);
  if (asked.tgt_id !== undefined && asked.tgt_id !== ROOT_TGT_ID) {
    throw refuse('tgt_id', `of a root pillar it is "${ROOT_TGT_ID}", or left out`);
  }
  return rootTarget;
}

async function resolveMinion(estate: Lookup, asked: Asked): Promise<ResolvedTarget> {
  refuseFields(asked, ['collection_id']);
  const minionId = oneId(asked, 'minion_id', zMinionId);
  if (asked.master === undefined) throw refuse('master', 'a minion pillar needs the master of the minion');
  if ((await estate.getMaster(asked.master)) === undefined) {
    throw new ColonnadeError('unknown_master', 'master: no such master', { field: 'master' });
  }
  if ((await estate.getMinion(asked.master, minionId)) === undefined) {
    const why = 'the master has no such minion; register it with PUT /masters/{master}/minions/{id}';
    throw new ColonnadeError('unknown_minion', `minion_id: ${why}`, { field: 'minion_id' });
  }
  return minionTarget(minionId, asked.master);
}

async function resolveCollection(estate: Lookup, asked: Asked): Promise<ResolvedTarget> {
  refuseFields(asked, ['minion_id', 'master']);
  const id = oneId(asked, 'collection_id', zCollectionId);
  const collection = await estate.getCollection(id);
  if (collection === undefined) throw refuse('collection_id', 'no such collection');
  return collectionTarget(id, collection.owner);
}

async function requireTgtId(
  asked: Asked,
  what: string,
  find: (id: string) => Promise<object | undefined>,
): Promise<string> {
  refuseFields(asked, ['minion_id', 'master', 'collection_id']);
  const id = asked.tgt_id;
  if (id === undefined) throw refuse('tgt_id', `a ${asked.tgt_type} pillar needs it`);
  if ((await find(id)) === undefined) throw refuse('tgt_id', `no such ${what}`);
  return id;
}

/** The id under its own name or as tgt_id; both only when they say the same. */
function oneId(
  asked: Asked,
  field: 'minion_id' | 'collection_id',
  schema: typeof zMinionId | typeof zCollectionId,
): string {
  const id = asked[field] ?? asked.tgt_id;
  if (id === undefined) throw refuse(field, `a ${asked.tgt_type} pillar needs it`);
  if (asked.tgt_id !== undefined && asked.tgt_id !== id)
    throw refuse('tgt_id', `says another id than ${field}`);
  const checked = schema.safeParse(id);
  if (checked.success) return id;
  throw refuse(
    asked[field] === undefined ? 'tgt_id' : field,
    checked.error.issues[0]?.message ?? 'not valid',
  );
}

function refuseFields(asked: Asked, fields: readonly ('minion_id' | 'master' | 'collection_id')[]): void {
  const found = fields.find((field) => asked[field] !== undefined);
  if (found !== undefined) throw refuse(found, `does not belong to a ${asked.tgt_type} pillar`);
}

function refuse(field: string, why: string): ColonnadeError {
  return new ColonnadeError('unprocessable', `${field}: ${why}`, { field });
}
