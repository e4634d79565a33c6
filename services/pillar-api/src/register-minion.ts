import type { Auditor } from '@colonnade/audit';
import { type Route, route } from '@colonnade/bus';
import { ColonnadeError, estateRegisterMinion, masterSubject, toColonnadeError } from '@colonnade/contracts';
import type { MasterRecord } from '@colonnade/estate-store';
import type { KeySet } from '@colonnade/identity';
import type { Estate } from './estate.ts';
import { minionEvent } from './estate-events.ts';
import type { Events } from './events.ts';
import { PROBLEMS } from './http/problem.ts';
import { settleMinion } from './membership/settle.ts';
import { createRegistrationRate } from './registration-rate.ts';
import type { Lifecycle } from './routes/lifecycle.ts';
import { createTokenVerifier, type MasterClaims } from './verify-master-token.ts';

/** Who registers in the name of nobody: a merger that met a new minion. */
const REGISTRAR = 'pillar-merger';

/** The bus endpoint by which a merger has a minion registered that it sees for the first time. */
export function registerMinionRoute(parts: {
  estate: Estate;
  keys: KeySet;
  lifecycle: Pick<Lifecycle, 'factsOf'>;
  auditor: Auditor;
  events: Events;
  /** See the settings of the same names. */
  minionsPerMaster: number;
  minionsPerMinute: number;
}): Route {
  const { estate, keys, lifecycle, auditor, events, minionsPerMaster: maxOfMaster } = parts;
  const rate = createRegistrationRate(parts.minionsPerMinute);
  const verify = createTokenVerifier(keys);
  return route(estateRegisterMinion, async ({ token, master: masterId, minion_id: id }) => {
    const claims = await verify(token);
    const master = await estate.store.getMaster(masterId);
    if (master === undefined) throw new ColonnadeError('unknown_master', 'there is no such master');
    checkClaims(claims, master);
    if ((await estate.store.getMinion(masterId, id)) !== undefined) return {};
    if (master.onUnknownMinion === 'refuse') {
      throw new ColonnadeError('unknown_minion', 'the master takes no minions that are not registered');
    }
    rate.take(masterId);
    const record = { master: masterId, id, collections: [], registeredBy: REGISTRAR };
    // Without a record nothing is changed, and without the record of its end nothing is answered.
    const span = auditor.begin(describe(masterId, id));
    await span.received();
    try {
      await estate.write({
        by: REGISTRAR,
        mutations: [{ kind: 'minion.put', expect: 'absent', record, maxOfMaster }],
        events: [minionEvent('minion.registered', record, await lifecycle.factsOf(masterId, id))],
      });
      await settleMinion(estate, masterId, id, REGISTRAR);
      events.minionRegistered({ master: masterId, minionId: id });
    } catch (thrown) {
      // Two requests of one new minion came at once.
      if (!(thrown instanceof ColonnadeError && thrown.code === 'already_exists')) {
        await span.complete(failureOf(thrown));
        throw thrown;
      }
    }
    await span.complete({ code: 200, annotations: { 'colonnade/decision': 'allow' } });
    return {};
  });
}

/** In the words of `PUT /masters/:master/minions/:id`, on behalf of the master whose token came. */
function describe(master: string, id: string): Parameters<Auditor['begin']>[0] {
  return {
    verb: 'update',
    requestURI: estateRegisterMinion.subject,
    user: { username: masterSubject(master), groups: [REGISTRAR] },
    objectRef: { resource: 'minions', namespace: master, name: id },
  };
}

function failureOf(thrown: unknown): { code: number; reason: string } {
  const { code } = toColonnadeError(thrown);
  return { code: PROBLEMS[code].status, reason: code };
}

function checkClaims(claims: MasterClaims, master: MasterRecord): void {
  const ofMaster = claims.sub === masterSubject(master.id);
  const listed = master.tokenIds.includes(claims.tokenId);
  if (!ofMaster || !listed)
    throw new ColonnadeError('unauthorized', 'the token is not a valid one of this master');
}
