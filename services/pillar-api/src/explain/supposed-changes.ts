import { ColonnadeError, type PreviewChange, type UnsavedChange } from '@colonnade/contracts';
import type { EstateStore } from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import { checkOpenValue } from '../pillar-value.ts';
import { resolveTarget } from '../target.ts';

type Lookup = Parameters<typeof resolveTarget>[0];

/** The pillar at a place, at the moment that is explained. */
export type FindPillar = (
  ...place: Parameters<EstateStore['findPillar']>
) => Promise<{ isSecret: boolean } | undefined>;

/** Of a secret the value is left out. */
export type SupposedChange = UnsavedChange & { value: Value | undefined };

/**
 * Changes of a preview, each resolved as if it were made. What the API would refuse to write is refused here too, but
 * for what only a write finds out: rights, and a name that Salt acts on.
 * @throws ColonnadeError `unprocessable` | `value_invalid` | `unknown_master` | `unknown_minion`, naming the change
 */
export async function supposeChanges(
  store: Lookup,
  find: FindPillar,
  changes: readonly PreviewChange[],
  user: string,
): Promise<readonly SupposedChange[]> {
  const supposed = new Map<string, SupposedChange>();
  for (const [index, change] of changes.entries()) {
    const one = await suppose(store, find, change, user).catch((thrown) => {
      throw atChange(index, thrown);
    });
    const key = [one.tgt_type, one.tgt_id, one.pillarenv, one.name].join('\0');
    if (supposed.has(key)) throw atChange(index, refuse('name', 'this pillar is changed twice'));
    supposed.set(key, one);
  }
  return [...supposed.values()];
}

/** @throws ColonnadeError `unprocessable` */
export async function requireCollections(
  store: Pick<EstateStore, 'getCollection'>,
  ids: readonly string[],
): Promise<void> {
  for (const [index, id] of ids.entries()) {
    if ((await store.getCollection(id)) !== undefined) continue;
    throw refuse(`collections.${index}`, 'no such collection');
  }
}

async function suppose(
  store: Lookup,
  find: FindPillar,
  change: PreviewChange,
  user: string,
): Promise<SupposedChange> {
  const { op, name, value } = change;
  const target = await resolveTarget(store, change, user);
  const stored = await find(target.tgtType, target.tgtId, name, target.pillarenv);
  const { tgtType: tgt_type, tgtId: tgt_id, pillarenv } = target;
  const place = { op, tgt_type, tgt_id, pillarenv, name };
  if (op === 'delete') {
    if (stored === undefined) throw refuse('name', 'there is no such pillar to delete');
    if (value !== undefined) throw refuse('value', 'a deletion has none');
    return { ...place, is_secret: stored.isSecret, value: undefined };
  }
  const isSecret = change.is_secret ?? stored?.isSecret ?? false;
  if (isSecret) return { ...place, is_secret: true, value: undefined };
  if (value === undefined) throw refuse('value', 'is missing');
  checkOpenValue(value);
  return { ...place, is_secret: false, value };
}

function refuse(field: string, why: string): ColonnadeError {
  return new ColonnadeError('unprocessable', `${field}: ${why}`, { field });
}

/** The same error, with the position of the change it is about. */
function atChange(index: number, thrown: unknown): unknown {
  if (!(thrown instanceof ColonnadeError) || thrown.field === undefined) return thrown;
  const at = `changes.${index}.`;
  return new ColonnadeError(thrown.code, at + thrown.message, { field: at + thrown.field, cause: thrown });
}
