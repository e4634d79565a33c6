import { ColonnadeError, parseEnv, rootTarget, zPageQuery, zReachPage } from '@colonnade/contracts';
import type {
  MasterRecord,
  MinionRecord,
  PillarRecord,
  TaskRecord,
  TaskTargets,
} from '@colonnade/estate-store';
import { isEndState } from '@colonnade/estate-store';
import { requireOn, selectOn } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { pageOptions, writeCursor } from '../http/cursor.ts';
import { fillPage } from '../http/page.ts';
import { defineRoute, type Route } from '../http/route.ts';

type Page = { after: string | undefined; limit: number };
type Reached = { minion: MinionRecord; collection: string | undefined };
type Rows = { rows: readonly Reached[]; next: string | undefined };

/**
 * `GET /pillars/{pid}/reach`: the minions that may have this pillar, by the tree and the memberships as they are now, in
 * the order of master and id. Whether another scope overrides it for one of them, `GET /explain` says.
 */
export function reachRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/pillars/:pid/reach',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    query: zPageQuery,
    response: zReachPage,
    async handle({ principal, params, query }) {
      const pillar = await estate.store.getPillar(params.pid ?? '');
      if (pillar === undefined) throw new ColonnadeError('not_found', 'there is no such pillar');
      await requireOn(principal, 'estate:read', pillar);
      const isVisible = await selectOn(principal, 'estate:read');
      const read = await readerOf(estate, pillar);
      const { rows, next } = await fillPage(
        pageOptions(query),
        read,
        ({ minion }) => isVisible({ tgtType: 'minion', tgtId: minion.id }),
        ({ minion }) => keyOf(minion),
        () => null,
      );
      const items = rows.map(({ minion: { master, id }, collection }) => {
        return { master, minion_id: id, collection: collection ?? null };
      });
      return { status: 200, body: { items, next_cursor: writeCursor(next) } };
    },
  });
}

type Read = (page: Page) => Promise<Rows>;

async function readerOf(estate: Estate, pillar: PillarRecord): Promise<Read> {
  switch (pillar.tgtType) {
    case 'root':
      return await readRoot(estate, pillar.pillarenv);
    case 'collection':
      return await readTargets(estate, { minions: [], collections: [pillar.tgtId] });
    case 'minion':
      return await readTargets(estate, { minions: namedIn(pillar.pillarenv), collections: [] });
    case 'task': {
      const task = await estate.store.getTask(pillar.tgtId);
      return await readTargets(estate, task !== undefined && isLive(task) ? task : NOBODY);
    }
    case 'task_tpl':
      return await readTargets(estate, NOBODY);
  }
}

/** Seed 000: the environment of every root pillar. */
const BASE_ENV = rootTarget.pillarenv;
const NOBODY: TaskTargets = { minions: [], collections: [] };

function isLive({ state, expiresAtMs }: TaskRecord): boolean {
  return !isEndState(state) && (expiresAtMs === undefined || expiresAtMs > Date.now());
}

function namedIn(pillarenv: string): TaskTargets['minions'] {
  const env = parseEnv(pillarenv);
  return env.kind === 'minion' ? [{ master: env.master, id: env.minionId }] : [];
}

/** `base` is everybody's; another environment is for the masters that list it. */
async function readRoot(estate: Estate, pillarenv: string): Promise<Read> {
  const masters = await estate.store.listMasters();
  const isFor = pillarenv === BASE_ENV ? () => true : ({ envs }: MasterRecord) => envs.includes(pillarenv);
  const allowed = new Set(masters.filter(isFor).map(({ id }) => id));
  return async (page) => {
    const { rows, next } = await estate.store.listMinions({}, page);
    const reached = rows.filter(({ master }) => allowed.has(master));
    return { rows: reached.map((minion) => ({ minion, collection: undefined })), next };
  };
}

/** The minions that are named and there, and the members of these collections and of all below them. */
async function readTargets(estate: Estate, { minions, collections }: TaskTargets): Promise<Read> {
  const within = await withAllBelow(estate, collections);
  const { minions: found } = await estate.store.snapshot({ ...NOTHING, minions });
  const named = [...found.values()].filter((minion) => minion !== undefined);
  return async (page) => {
    const members = await estate.store.listMinions({ collections: [...within] }, page);
    const all = new Map([...named.filter(isAfter(page.after)), ...members.rows].map((m) => [keyOf(m), m]));
    const rows = [...all.values()].sort(byStoreOrder).slice(0, page.limit);
    const isLast = rows.length === all.size && members.next === undefined;
    const last = rows.at(-1);
    return {
      rows: rows.map((minion) => ({ minion, collection: lastIn(minion, within) })),
      next: isLast || last === undefined ? undefined : keyOf(last),
    };
  };
}

const NOTHING = { since: undefined, scopes: [], collections: false, masters: [], minions: [] };

async function withAllBelow(estate: Estate, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const found = new Set(ids);
  if (found.size === 0) return found;
  const children = Map.groupBy(await estate.store.listCollections(), ({ parentId }) => parentId);
  // A set that grows while it is walked is walked to its new end.
  for (const id of found) for (const child of children.get(id) ?? []) found.add(child.id);
  return found;
}

/** Through which collection a minion has it: of several the one that is applied last. */
function lastIn({ collections }: MinionRecord, within: ReadonlySet<string>): string | undefined {
  return collections.findLast((id) => within.has(id));
}

type MinionKey = Pick<MinionRecord, 'master' | 'id'>;

/** The store's cursor for lists of minions. */
function keyOf({ master, id }: MinionKey): string {
  return `${master}/${id}`;
}

function isAfter(after: string | undefined): (minion: MinionRecord) => boolean {
  if (after === undefined) return () => true;
  const slash = after.indexOf('/');
  const at = { master: after.slice(0, slash), id: after.slice(slash + 1) };
  return (minion) => byStoreOrder(minion, at) > 0;
}

/** Both stores compare the bytes of UTF-8, which is not how JavaScript compares text. */
function byStoreOrder(a: MinionKey, b: MinionKey): number {
  return compareBytes(a.master, b.master) || compareBytes(a.id, b.id);
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
