import {
  type Call,
  ColonnadeError,
  LIMITS,
  minionEnv,
  minionTarget,
  zMinionMove,
  zMinionPath,
  zMinionView,
} from '@colonnade/contracts';
import {
  type MinionRecord,
  type Mutation,
  namedCollections,
  type OutboxDraft,
  type PillarRecord,
} from '@colonnade/estate-store';
import { canonicalBytes, type Value } from '@colonnade/value';
import type { Principal } from '../auth/authenticate.ts';
import { requireOn } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { minionEvent, pillarMovedEvent } from '../estate-events.ts';
import { checkIfMatch, requireIfMatch } from '../http/etag.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { settleMinion } from '../membership/settle.ts';
import { resealAll } from '../sealed-batch.ts';
import { viewMinion } from '../views.ts';
import { etagOfMinion, findMinion } from './minions.ts';

/**
 * `POST /masters/{master}/minions/{id}/move`: a minion goes to another master, with its collections and its pillars. The
 * master is part of the AAD, so its secrets are sealed anew. One transaction: all of it is there, or nothing happened.
 */
export function minionMoveRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/masters/:master/minions/:id/move',
    permission: 'minion:write',
    scope: 'target',
    idempotency: 'ignored',
    params: zMinionPath,
    body: zMinionMove,
    response: zMinionView,
    async handle({ principal, params, body, conditions, call }) {
      requireIfMatch(conditions);
      const { minion, incarnation } = await findMinion(estate, params.master, params.id);
      await requireOn(principal, 'minion:write', { tgtType: 'minion', tgtId: minion.id });
      checkIfMatch(conditions, etagOfMinion(minion, incarnation));
      if (body.master === minion.master)
        throw new ColonnadeError('conflict', 'the minion is one of this master already');
      const expect = await checkDestination(estate, body.master, minion.id);
      const pillars = await pillarsOf(estate, minionEnv(minion.id, minion.master));
      for (const pillar of pillars) await requireOn(principal, 'pillar:write', pillar);
      const values = await sealedFor(kms, principal, pillars, body.master, call);
      const { tick: _, byRule: __, ...rest } = minion;
      const moved = { ...rest, collections: namedCollections(minion), master: body.master };
      const { clock } = await estate.write({
        by: principal.sub,
        mutations: [
          { kind: 'minion.put', expect, record: moved },
          ...(await inventoryFor(estate, minion, body.master)),
          ...pillars.map((pillar, i) => movePillar(pillar, body.master, values[i] as Value)),
          // Refused while a pillar is left, so one that was made meanwhile makes it all fail.
          { kind: 'minion.delete', master: minion.master, id: minion.id, expect: minion.tick },
        ],
        events: [
          minionEvent('minion.moved', moved, undefined, minion.master),
          ...pillars.map((p) => movedEvent(p, body.master)),
        ],
      });
      await settleMinion(estate, moved.master, moved.id, principal.sub);
      const settled = (await estate.store.getMinion(moved.master, moved.id)) ?? {
        ...moved,
        tick: clock.tick,
      };
      const view = viewMinion(settled, clock.incarnation);
      const location = `/masters/${moved.master}/minions/${encodeURIComponent(moved.id)}`;
      return { status: 200, body: view, etag: view.etag, location };
    },
  });
}

/**
 * A minion that asked its new master already was registered there, with nothing: that record is replaced.
 * @returns what the write has to find there
 */
async function checkDestination(estate: Estate, master: string, id: string): Promise<number | 'absent'> {
  if ((await estate.store.getMaster(master)) === undefined)
    throw new ColonnadeError('unknown_master', 'master: no such master', { field: 'master' });
  const there = await estate.store.getMinion(master, id);
  if (there === undefined) return 'absent';
  if (namedCollections(there).length === 0 && (await pillarsOf(estate, minionEnv(id, master))).length === 0)
    return there.tick;
  const how =
    'that master has a minion of this id with collections or pillars of its own: delete or move those first';
  throw new ColonnadeError('already_exists', how);
}

/** It would go with the old record; one that the new master has of the minion already is the newer one. */
async function inventoryFor(
  estate: Estate,
  { master: from, id }: MinionRecord,
  master: string,
): Promise<Mutation[]> {
  const inventory = await estate.store.getInventory(from, id);
  if (inventory === undefined || (await estate.store.getInventory(master, id)) !== undefined) return [];
  return [{ kind: 'inventory.put', expect: 'absent', record: { master, id, facts: inventory.facts } }];
}

/** @throws ColonnadeError `conflict` for more than one transaction may hold */
async function pillarsOf(estate: Estate, pillarenv: string): Promise<readonly PillarRecord[]> {
  const query = { since: undefined, scopes: [pillarenv], collections: false, masters: [], minions: [] };
  const pillars = (await estate.store.snapshot(query)).scopes.get(pillarenv) ?? [];
  const bytes = pillars.reduce((sum, { value }) => sum + canonicalBytes(value).length, 0);
  if (pillars.length <= LIMITS.batchPillars && bytes <= LIMITS.batchBytes) return pillars;
  throw new ColonnadeError(
    'conflict',
    `the minion has ${pillars.length} pillars of ${bytes} bytes; at most ${LIMITS.batchPillars} of ${LIMITS.batchBytes} bytes ` +
      'can be moved in one transaction: move some elsewhere first (POST /pillars/{pid}/move)',
  );
}

async function sealedFor(
  kms: Kms,
  principal: Principal,
  pillars: readonly PillarRecord[],
  master: string,
  call: Call,
): Promise<readonly Value[]> {
  const secrets = pillars.filter(({ isSecret }) => isSecret);
  const moves = secrets.map((pillar) => ({ from: pillar, to: placeAt(pillar, master), value: pillar.value }));
  const sealed = (await resealAll(kms, principal, moves, call)).values();
  return pillars.map((pillar) => (pillar.isSecret ? (sealed.next().value as Value) : pillar.value));
}

function placeAt({ tgtId, name }: PillarRecord, master: string) {
  return { ...minionTarget(tgtId, master), name };
}

function movePillar(pillar: PillarRecord, master: string, value: Value): Mutation {
  const place = placeAt(pillar, master);
  return { kind: 'pillar.move', pid: pillar.pid, expectTick: pillar.tick, place, value };
}

function movedEvent(pillar: PillarRecord, master: string): OutboxDraft {
  return pillarMovedEvent('pillar.moved', { ...pillar, ...placeAt(pillar, master) }, pillar);
}
