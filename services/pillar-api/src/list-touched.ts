import { type Route, route } from '@colonnade/bus';
import {
  decodeTree,
  estateListTouched,
  type Touched,
  type TouchedMinion,
  zInventoryFacts,
} from '@colonnade/contracts';
import type { CollectionRecord, EstateStore, MinionRecord } from '@colonnade/estate-store';

type Store = Pick<EstateStore, 'getMinion' | 'listMinions' | 'listCollections' | 'getInventory'>;

/** The bus endpoint by which hook-runner learns whom a change touches, and what hooks are to be told of them. */
export function listTouchedRoute(store: Store): Route {
  return route(estateListTouched, async ({ touched, after, limit }) => {
    const { rows, next } = await pageOf(store, touched, { after, limit });
    const minions = await Promise.all(rows.map((minion) => describe(store, minion)));
    return { minions, ...(next === undefined ? {} : { next }) };
  });
}

async function pageOf(
  store: Store,
  touched: Touched,
  page: { after: string | undefined; limit: number },
): Promise<{ rows: readonly MinionRecord[]; next: string | undefined }> {
  if (touched.kind === 'minion') {
    const minion = await store.getMinion(touched.master, touched.id);
    return { rows: minion === undefined ? [] : [minion], next: undefined };
  }
  const { rows, next } = await store.listMinions({}, page);
  if (touched.kind === 'all') return { rows, next };
  const ids = subtree(await store.listCollections(), touched.id);
  return { rows: rows.filter(({ collections }) => collections.some((id) => ids.has(id))), next };
}

/** A collection and all below it. */
function subtree(all: readonly CollectionRecord[], root: string): ReadonlySet<string> {
  const ids = new Set([root]);
  for (let before = 0; before < ids.size; ) {
    before = ids.size;
    for (const { id, parentId } of all) if (parentId !== undefined && ids.has(parentId)) ids.add(id);
  }
  return ids;
}

async function describe(store: Store, { master, id }: MinionRecord): Promise<TouchedMinion> {
  const inventory = await store.getInventory(master, id);
  const facts = inventory === undefined ? {} : decodeTree(zInventoryFacts, inventory.facts);
  return {
    master,
    id,
    hostname: facts.hostname || id,
    agent_type: facts.agent_type || 'salt',
    roles: facts.roles ?? [],
  };
}
