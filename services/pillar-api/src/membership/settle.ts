import {
  type CollectionRule,
  ColonnadeError,
  decodeTree,
  type InventoryFacts,
  LIMITS,
  zInventoryFacts,
} from '@colonnade/contracts';
import {
  type CollectionRecord,
  type InventoryRecord,
  type MinionRecord,
  namedCollections,
} from '@colonnade/estate-store';
import type { Estate } from '../estate.ts';
import { minionEvent } from '../estate-events.ts';
import { everyRow } from '../every-row.ts';
import { ruleHolds } from './rule.ts';
import { readRule } from './rule-text.ts';

type Store = Pick<
  Estate['store'],
  'listCollections' | 'getMinion' | 'getInventory' | 'listMinions' | 'listInventories'
>;
type Ruling = { rules: readonly { id: string; rule: CollectionRule }[]; mark: string };
type Change = { minion: MinionRecord; facts: InventoryFacts; collections: readonly string[] };

/** Each try is one more change by somebody else meanwhile. */
const TRIES = 20;

/**
 * Makes a minion's memberships by rule what its inventory and the rules say now. Whoever changed either calls it afterwards; it looks again when it has
 * written, so that of two changes at once the later one's result stays.
 * @throws ColonnadeError `conflict`: it changed all the time
 */
export async function settleMinion(estate: Estate, master: string, id: string, by: string): Promise<void> {
  let seen = '';
  for (let i = 0; i < TRIES; i++) {
    const ruling = await readRules(estate.store);
    const minion = await estate.store.getMinion(master, id);
    const inventory = await estate.store.getInventory(master, id);
    if (minion === undefined) return;
    const now = `${ruling.mark} ${inventory?.tick ?? ''}`;
    if (now === seen) return;
    const change = changeOf(minion, inventory, ruling);
    if (change === undefined || (await write(estate, [change], by))) seen = now;
  }
  throw new ColonnadeError('conflict', 'memberships by rule changed all the time; try again');
}

/**
 * The same for all minions, after a rule has changed. Goes over them until nothing is left to change.
 * @returns how many minions it changed
 * @throws ColonnadeError `conflict`
 */
export async function settleAll(estate: Estate, by: string): Promise<number> {
  let changed = 0;
  for (let i = 0; i < TRIES; i++) {
    const changes = await findChanges(estate.store);
    if (changes.length === 0) return changed;
    for (let at = 0; at < changes.length; at += LIMITS.batchPillars) {
      const some = changes.slice(at, at + LIMITS.batchPillars);
      // One that changed meanwhile takes the others with it; the next round has them again.
      if (await write(estate, some, by)) changed += some.length;
      else for (const one of some) await settleMinion(estate, one.minion.master, one.minion.id, by);
    }
  }
  throw new ColonnadeError('conflict', 'memberships by rule changed all the time; try again');
}

async function findChanges(store: Store): Promise<Change[]> {
  const ruling = await readRules(store);
  const inventories = new Map<string, InventoryRecord>();
  for await (const one of everyRow((page) => store.listInventories({ accepted: true }, page))) {
    inventories.set(`${one.master}/${one.id}`, one);
  }
  const changes: Change[] = [];
  for await (const minion of everyRow((page) => store.listMinions({}, page))) {
    const change = changeOf(minion, inventories.get(`${minion.master}/${minion.id}`), ruling);
    if (change !== undefined) changes.push(change);
  }
  return changes;
}

async function readRules(store: Pick<Store, 'listCollections'>): Promise<Ruling> {
  const ruled = (await store.listCollections()).filter(({ rule }) => rule !== undefined);
  return { rules: ruled.map(parseRule), mark: ruled.map(({ id, tick }) => `${id}@${tick}`).join() };
}

function parseRule({ id, rule = '' }: CollectionRecord): Ruling['rules'][number] {
  return { id, rule: readRule(rule) };
}

/** In the order of the collections' ids. Who has told nothing of himself is a member of nothing by rule. */
function changeOf(
  minion: MinionRecord,
  inventory: InventoryRecord | undefined,
  { rules }: Ruling,
): Change | undefined {
  const { master, id, byRule = [] } = minion;
  const facts = inventory === undefined ? undefined : decodeTree(zInventoryFacts, inventory.facts);
  const named = namedCollections(minion);
  const held =
    facts === undefined
      ? []
      : rules.filter(({ rule }) => ruleHolds(rule, { master, id, facts })).map((one) => one.id);
  const room = LIMITS.collectionsPerMinion - named.length;
  const collections = held.filter((one) => !named.includes(one)).slice(0, room);
  if (collections.join() === byRule.join()) return undefined;
  return { minion, facts: facts ?? {}, collections };
}

/** @returns false: one of them has changed since it was read */
async function write(estate: Estate, changes: readonly Change[], by: string): Promise<boolean> {
  try {
    await estate.write({
      by,
      mutations: changes.map(({ minion: { master, id, tick: expect }, collections }) => {
        return { kind: 'minion.ruled', master, id, expect, collections };
      }),
      events: changes.map(({ minion, facts, collections }) => {
        const now = { ...minion, collections: [...collections, ...namedCollections(minion)] };
        return minionEvent('minion.updated', now, facts);
      }),
    });
    return true;
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError) || !MOVED.has(thrown.code)) throw thrown;
    return false;
  }
}

/** The minion has changed or is gone, or a collection is. */
const MOVED: ReadonlySet<string> = new Set(['precondition_failed', 'not_found', 'unprocessable']);
