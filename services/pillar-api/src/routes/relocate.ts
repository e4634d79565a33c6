import {
  type Call,
  type PillarView,
  type ResolvedTarget,
  zPillarMove,
  zPillarRename,
  zPillarView,
} from '@colonnade/contracts';
import type { PillarRecord } from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import type { Principal } from '../auth/authenticate.ts';
import { requireOn } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { pillarMovedEvent } from '../estate-events.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { resealAll } from '../sealed-batch.ts';
import { resolveTarget } from '../target.ts';
import { viewPillar } from '../views.ts';
import { asNamedTwin, requireNamePermission } from './pillars.ts';
import { answer, findMatching } from './secrecy.ts';

/**
 * Another name or another target for a pillar, which keeps its pid and its history. A secret is sealed for its new
 * place, which takes the right to reveal it: see SECURITY.md.
 */
export function relocateRoutes(estate: Estate, kms: Kms): readonly Route[] {
  return [renameRoute(estate, kms), moveRoute(estate, kms)];
}

function renameRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/pillars/:pid/rename',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'ignored',
    body: zPillarRename,
    response: zPillarView,
    async handle(input) {
      const pillar = await findMatching(estate, input);
      requireNamePermission(input.principal, input.body.name);
      return answer(
        await relocate({ estate, kms, ...input }, pillar, { ...placeOf(pillar), name: input.body.name }),
      );
    },
  });
}

function moveRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/pillars/:pid/move',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'ignored',
    body: zPillarMove,
    response: zPillarView,
    async handle(input) {
      const pillar = await findMatching(estate, input);
      const target = await resolveTarget(estate.store, input.body, input.principal.sub);
      return answer(await relocate({ estate, kms, ...input }, pillar, { ...target, name: pillar.name }));
    },
  });
}

type Place = ResolvedTarget & { name: string };
type Parts = { estate: Estate; kms: Kms; principal: Principal; call: Call };

function placeOf({ tgtType, tgtId, pillarenv, name }: Place): Place {
  return { tgtType, tgtId, pillarenv, name };
}

/** Where it stands already it stays, without a new version: a repeated request changes nothing. */
async function relocate(
  { estate, kms, principal, call }: Parts,
  pillar: PillarRecord,
  place: Place,
): Promise<PillarView> {
  const { pid, tick: expectTick } = pillar;
  if (place.name === pillar.name && place.pillarenv === pillar.pillarenv && place.tgtType === pillar.tgtType)
    return viewPillar(pillar, await estate.incarnation());
  await requireOn(principal, 'pillar:write', place);
  const value = pillar.isSecret
    ? ((
        await resealAll(kms, principal, [{ from: pillar, to: place, value: pillar.value }], call)
      )[0] as Value)
    : pillar.value;
  const type = place.name === pillar.name ? 'pillar.moved' : 'pillar.renamed';
  const { clock, atMs } = await estate
    .write({
      by: principal.sub,
      mutations: [{ kind: 'pillar.move', pid, expectTick, place: placeOf(place), value }],
      events: [pillarMovedEvent(type, { ...pillar, ...place }, pillar)],
    })
    .catch(async (thrown) => {
      throw await asNamedTwin(estate, place, thrown);
    });
  const written = { updatedBy: principal.sub, updatedAtMs: atMs, tick: clock.tick };
  return viewPillar({ ...pillar, ...place, value, ...written }, clock.incarnation);
}
