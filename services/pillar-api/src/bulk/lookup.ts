import type {
  CollectionRecord,
  EstateStore,
  ImportChange,
  MasterRecord,
  MinionRecord,
  TaskRecord,
  TemplateRecord,
} from '@colonnade/estate-store';

type Store = Pick<
  EstateStore,
  'getMaster' | 'getMinion' | 'getCollection' | 'getTask' | 'getTemplate' | 'getInventory' | 'getService'
>;

/** The estate as it will be after what was planned so far: what the file brings with it is there for what comes after. */
export type Lookup = Store & { note(change: ImportChange): void };

/** Tick of what is not in the estate yet. */
export const PLANNED = -1;

const WRITTEN = { createdBy: '', updatedBy: '', createdAtMs: 0, updatedAtMs: 0, tick: PLANNED };

export function createLookup(store: Store): Lookup {
  const masters = new Map<string, MasterRecord | undefined>();
  const minions = new Map<string, MinionRecord | undefined>();
  const collections = new Map<string, CollectionRecord | undefined>();
  const templates = new Map<string, TemplateRecord | undefined>();
  const tasks = new Map<string, TaskRecord | undefined>();
  return {
    getMaster: (id) => cached(masters, id, () => store.getMaster(id)),
    getMinion: (master, id) => cached(minions, `${master}/${id}`, () => store.getMinion(master, id)),
    getCollection: (id) => cached(collections, id, () => store.getCollection(id)),
    getTask: (id) => cached(tasks, id, () => store.getTask(id)),
    getTemplate: (id) => cached(templates, id, () => store.getTemplate(id)),
    // Nothing hangs on these.
    getInventory: (master, id) => store.getInventory(master, id),
    getService: (id) => store.getService(id),
    note(change) {
      if (change.kind === 'master.put') masters.set(change.record.id, { ...change.record, tick: PLANNED });
      if (change.kind === 'minion.put') {
        const { master, id } = change.record;
        minions.set(`${master}/${id}`, { ...change.record, tick: PLANNED });
      }
      if (change.kind === 'collection.put')
        collections.set(change.record.id, { ...change.record, tick: PLANNED });
      // Schemas are large, and nobody asks for one.
      if (change.kind === 'template.put')
        templates.set(change.record.id, { ...change.record, schema: true, ...WRITTEN });
      if (change.kind === 'task.copy') tasks.set(change.record.id, { ...change.record, ...WRITTEN });
    },
  };
}

async function cached<T>(known: Map<string, T>, key: string, read: () => Promise<T>): Promise<T> {
  if (known.has(key)) return known.get(key) as T;
  const found = await read();
  known.set(key, found);
  return found;
}
