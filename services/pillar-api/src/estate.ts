import { ColonnadeError } from '@colonnade/contracts';
import type {
  EstateStore,
  IdempotencyDraft,
  Mutation,
  OutboxDraft,
  WriteResult,
} from '@colonnade/estate-store';

/** The estate as the routes use it: the store, its incarnation for ETags, and writes that wake the relay. */
export type Estate = {
  store: Omit<EstateStore, 'write' | keyof AsyncDisposable>;
  incarnation(): Promise<string>;
  /** One transaction, at `atMs`. @throws ColonnadeError of the store, its fields named as in HTTP bodies */
  write(batch: {
    by: string;
    mutations: readonly Mutation[];
    events: readonly OutboxDraft[];
    idempotency?: IdempotencyDraft | undefined;
  }): Promise<WriteResult & { atMs: number }>;
};

const NOTHING = { since: undefined, scopes: [], collections: false, masters: [], minions: [] };

export function createEstate(store: EstateStore, wakeRelay: () => void): Estate {
  return {
    store,
    incarnation: async () => (await store.snapshot(NOTHING)).clock.incarnation,
    async write({ by, mutations, events, idempotency }) {
      const kept = idempotency === undefined ? {} : { idempotency };
      const atMs = Date.now();
      try {
        const result = await store.write({ by, mutations, events, atMs, ...kept });
        wakeRelay();
        return { ...result, atMs };
      } catch (thrown) {
        throw asHttpError(thrown);
      }
    },
  };
}

/** Tries of a change that somebody else's change of the same record got in the way of. */
const TRIES = 5;

/** Makes a change that reads the record itself, again when it was changed in between. @throws whatever it throws otherwise */
export async function whileRaced(change: () => Promise<void>): Promise<void> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await change();
    } catch (thrown) {
      const raced = thrown instanceof ColonnadeError && thrown.code === 'precondition_failed';
      if (!raced || tried === TRIES) throw thrown;
    }
  }
}

/**
 * `parentId` → `parent_id`. A record that is missing *under a field* is named in the body, not in the path: that is
 * refused content, not "no such page".
 */
function asHttpError(thrown: unknown): unknown {
  if (!(thrown instanceof ColonnadeError) || thrown.field === undefined) return thrown;
  const field = thrown.field.replace(/[A-Z]/gu, (c) => `_${c.toLowerCase()}`);
  const code = thrown.code === 'not_found' || thrown.code === 'bad_request' ? 'unprocessable' : thrown.code;
  return new ColonnadeError(code, `${field}: ${thrown.message}`, { field, cause: thrown });
}
