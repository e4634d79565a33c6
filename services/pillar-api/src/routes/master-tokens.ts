import {
  type Call,
  ColonnadeError,
  LIMITS,
  zMasterToken,
  zMasterTokenCreate,
  zNothing,
} from '@colonnade/contracts';
import type { MasterRecord } from '@colonnade/estate-store';
import type { Principal } from '../auth/authenticate.ts';
import { type Estate, whileRaced } from '../estate.ts';
import { masterEvent } from '../estate-events.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { issueToken, revokeQuietly, revokeToken } from '../master-tokens.ts';
import { findMaster } from './masters.ts';

/** Further tokens of a master, for changing one without a gap, and taking one back. */
export function masterTokenRoutes(estate: Estate, kms: Kms): readonly Route[] {
  return [addRoute(estate, kms), removeRoute(estate, kms)];
}

function addRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/masters/:id/tokens',
    permission: 'master:write',
    scope: 'estate',
    idempotency: 'refused',
    body: zMasterTokenCreate,
    response: zMasterToken,
    async handle({ principal, params, body, call }) {
      const { master } = await findMaster(estate, params.id);
      checkRoom(master);
      const token = await issueToken(kms, principal, master.id, body?.token_lifetime_s, call);
      const written = addMasterToken(estate, principal, master.id, token.jti);
      await revokeQuietly(kms, principal, token.jti, call, written);
      return { status: 201, body: token, location: `/masters/${master.id}/tokens/${token.jti}` };
    },
  });
}

function removeRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'DELETE',
    url: '/masters/:id/tokens/:jti',
    permission: 'master:write',
    scope: 'estate',
    idempotency: 'ignored',
    response: zNothing,
    async handle({ principal, params, call }) {
      const { master } = await findMaster(estate, params.id);
      const jti = params.jti ?? '';
      if (!master.tokenIds.includes(jti))
        throw new ColonnadeError('not_found', 'the master has no such token');
      await removeToken(estate, kms, principal, master.id, jti, call);
      return { status: 204 };
    },
  });
}

/** The KMS first: when the second step fails, the token is dead already and the call can be repeated. */
async function removeToken(
  estate: Estate,
  kms: Kms,
  principal: Principal,
  master: string,
  jti: string,
  call: Call,
): Promise<void> {
  await revokeToken(kms, principal, jti, call);
  await changeTokens(estate, principal, master, (latest) => latest.tokenIds.filter((id) => id !== jti));
}

/** The id of a master that may have one token more. @throws ColonnadeError `not_found`, `conflict` */
export async function findRoomyMaster(estate: Estate, id: string | undefined): Promise<string> {
  const { master } = await findMaster(estate, id);
  checkRoom(master);
  return master.id;
}

/** Lists a token of a master, which makes it count. @throws ColonnadeError `conflict` */
export function addMasterToken(
  estate: Estate,
  principal: Principal,
  master: string,
  tokenId: string,
): Promise<void> {
  return changeTokens(estate, principal, master, (latest) => {
    checkRoom(latest);
    return [...latest.tokenIds, tokenId];
  });
}

async function changeTokens(
  estate: Estate,
  principal: Principal,
  id: string,
  change: (latest: MasterRecord) => readonly string[],
): Promise<void> {
  await whileRaced(async () => {
    const { master } = await findMaster(estate, id);
    const { tick: expect, ...before } = master;
    const record = { ...before, tokenIds: change(master) };
    await estate.write({
      by: principal.sub,
      mutations: [{ kind: 'master.put', expect, record }],
      events: [masterEvent('master.updated', record)],
    });
  });
}

function checkRoom(master: MasterRecord): void {
  if (master.tokenIds.length < LIMITS.tokensPerMaster) return;
  throw new ColonnadeError(
    'conflict',
    `a master has at most ${LIMITS.tokensPerMaster} tokens: delete one first`,
  );
}
