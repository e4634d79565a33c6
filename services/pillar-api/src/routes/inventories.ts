import {
  ColonnadeError,
  clipText,
  decodeTree,
  encodeTree,
  LIMITS,
  zInventory,
  zInventoryFacts,
  zInventoryPage,
  zInventoryPath,
  zInventoryQuery,
  zInventoryView,
  zNothing,
  zValue,
} from '@colonnade/contracts';
import type { InventoryRecord } from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import type { z } from 'zod';
import type { Principal } from '../auth/authenticate.ts';
import { requireOn, selectOn, type Target } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { inventoryEvent } from '../estate-events.ts';
import type { Events } from '../events.ts';
import { decodeInput } from '../http/body.ts';
import { pageOptions, writeCursor } from '../http/cursor.ts';
import { checkIfMatch, etagOf, requireIfMatch } from '../http/etag.ts';
import { fillPage } from '../http/page.ts';
import { createRates } from '../http/rates.ts';
import type { OnRefused } from '../http/refusal.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { settleMinion } from '../membership/settle.ts';
import { viewTime } from '../views.ts';

type InventoryEvents = Pick<Events, 'inventoryFailed'>;

/**
 * What minions tell of themselves (seed 002, inventories). A minion with an inventory and no registration is pending; to
 * register it is to accept it.
 */
export function inventoryRoutes(estate: Estate, events: InventoryEvents): readonly Route[] {
  return [receiveRoute(estate, events), listRoute(estate), getRoute(estate), dropRoute(estate)];
}

function receiveRoute(estate: Estate, events: InventoryEvents): Route {
  const route = defineRoute({
    method: 'POST',
    url: '/inventories',
    permission: 'minion:write',
    scope: 'target',
    idempotency: 'ignored',
    // Checked by the handler: one that cannot be used is an event of its own.
    body: zValue,
    response: zInventoryView,
    handle: ({ principal, body }) => receive(estate, principal, body),
  });
  // And what is none is not recorded: nobody knows what is in it.
  const audit = { ...route.audit, request: zInventory };
  return {
    ...route,
    audit,
    docs: { ...route.docs, body: zInventory },
    onRefused: noteFailures(estate, events),
  };
}

async function receive(estate: Estate, principal: Principal, body: Value) {
  const { master, minion_id: id, ...facts } = decodeInput(zInventory, body);
  await requireOn(principal, 'minion:write', itself(id));
  const before = await estate.store.getInventory(master, id);
  const minion = await estate.store.getMinion(master, id);
  const record = { master, id, facts: encodeTree(zInventoryFacts, facts) };
  const state = minion === undefined ? 'pending' : 'accepted';
  const { clock, atMs } = await estate.write({
    by: principal.sub,
    mutations: [{ kind: 'inventory.put', expect: before === undefined ? 'absent' : undefined, record }],
    events: [inventoryEvent('minion.inventory-received', { master, id, facts, state })],
  });
  if (minion !== undefined) await settleMinion(estate, master, id, principal.sub);
  const received = { receivedBy: principal.sub, receivedAtMs: atMs, accepted: minion !== undefined };
  const view = viewInventory({ ...record, ...received, tick: clock.tick }, clock.incarnation);
  if (before !== undefined) return { status: 200, body: view, etag: view.etag };
  return { status: 201, body: view, etag: view.etag, location: placeOf(master, id) };
}

const FAULTS_OF_INVENTORY: ReadonlySet<string> = new Set([
  'bad_request',
  'unsupported_media_type',
  'too_large',
  'unprocessable',
  'unknown_master',
  'value_invalid',
]);
const REASON_CHARACTERS = 1024;

/**
 * Hooks may want to see it, however it was refused. Who may write here only in part may not make others' hooks run for nothing,
 * and nobody may fill the stream with what is none.
 */
function noteFailures(estate: Estate, events: InventoryEvents): OnRefused {
  const perMinute = LIMITS.failedInventoriesPerMinute;
  const rates = createRates({ perMinute, burst: perMinute });
  return ({ principal, error, body }) => {
    if (error.retryable || !FAULTS_OF_INVENTORY.has(error.code)) return undefined;
    if (!principal.access.whole.has('minion:write')) return undefined;
    const told = rates.take(principal.rateKey).allowed;
    events.inventoryFailed(told ? 'told' : 'suppressed');
    if (!told) return undefined;
    const data = { reason: reasonOf(error), inventory: body };
    return async () => {
      await estate.write({
        by: principal.sub,
        mutations: [],
        events: [{ type: 'minion.inventory-failed', subject: '/inventories', data }],
      });
    };
  };
}

/** One line that any environment can carry: it may name a field that the inventory has. */
function reasonOf({ message }: ColonnadeError): string {
  return clipText(message.toWellFormed().replaceAll(/\p{Cc}+/gu, ' '), REASON_CHARACTERS);
}

function listRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/inventories',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    query: zInventoryQuery,
    response: zInventoryPage,
    async handle({ principal, query }) {
      const isVisible = await selectOn(principal, 'estate:read');
      const incarnation = await estate.incarnation();
      const filter = {
        ...(query.master === undefined ? {} : { master: query.master }),
        ...(query.state === undefined ? {} : { accepted: query.state === 'accepted' }),
      };
      const { rows, next } = await fillPage(
        pageOptions(query),
        (page) => estate.store.listInventories(filter, page),
        ({ id }) => isVisible(itself(id)),
        ({ master, id }) => `${master}/${id}`,
        ({ facts }) => facts,
      );
      const items = rows.map((inventory) => viewInventory(inventory, incarnation));
      return { status: 200, body: { items, next_cursor: writeCursor(next) } };
    },
  });
}

function getRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/masters/:master/minions/:id/inventory',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    params: zInventoryPath,
    response: zInventoryView,
    async handle({ principal, params }) {
      const view = await findView(estate, params);
      await requireOn(principal, 'estate:read', itself(params.id));
      return { status: 200, body: view, etag: view.etag };
    },
  });
}

/** Refuses a minion that is pending. */
function dropRoute(estate: Estate): Route {
  return defineRoute({
    method: 'DELETE',
    url: '/masters/:master/minions/:id/inventory',
    permission: 'minion:write',
    scope: 'target',
    idempotency: 'ignored',
    params: zInventoryPath,
    response: zNothing,
    async handle({ principal, params, conditions }) {
      requireIfMatch(conditions);
      const view = await findView(estate, params);
      await requireOn(principal, 'minion:write', itself(params.id));
      checkIfMatch(conditions, view.etag);
      const { master, id } = params;
      await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'inventory.delete', master, id, expect: view.clock }],
        events: [
          inventoryEvent('minion.inventory-deleted', { master, id, facts: view.facts, state: view.state }),
        ],
      });
      return { status: 204 };
    },
  });
}

async function findView(estate: Estate, { master, id }: { master: string; id: string }) {
  const inventory = await estate.store.getInventory(master, id);
  if (inventory === undefined) throw new ColonnadeError('not_found', 'there is no such inventory');
  return viewInventory(inventory, await estate.incarnation());
}

function itself(id: string): Target {
  return { tgtType: 'minion', tgtId: id };
}

function placeOf(master: string, id: string): string {
  return `/masters/${master}/minions/${encodeURIComponent(id)}/inventory`;
}

function viewInventory(record: InventoryRecord, incarnation: string): z.output<typeof zInventoryView> {
  const { master, id, facts, receivedBy, receivedAtMs, accepted, tick } = record;
  return {
    master,
    minion_id: id,
    state: accepted ? 'accepted' : 'pending',
    facts: decodeTree(zInventoryFacts, facts),
    received_by: receivedBy,
    received_at: viewTime(receivedAtMs),
    clock: tick,
    etag: etagOf(`inventory:${master}/${id}`, incarnation, tick),
  };
}
