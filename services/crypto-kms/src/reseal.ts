import type { AuditSpan } from '@colonnade/audit';
import { type Route, route } from '@colonnade/bus';
import { type Call, type Enc, type Endpoint, kmsCheck, kmsReseal, kmsRewrap } from '@colonnade/contracts';
import { answerEach, checkBatchBytes, type ItemResult, outcomeAnnotations } from './batch.ts';
import { aadOf, checkOpenContext, checkSealContext } from './context.ts';
import { type Keys, openValue, resealValue, rewrapDek, type Wrapping } from './envelope.ts';
import type { Events } from './events.ts';
import type { GrantGuard } from './grant-guard.ts';
import { onRecord, pillarRef, type Trail } from './trail.ts';

/** Places of a batch that are named in its record. */
const RECORDED_PLACES = 5;

/**
 * Moves sealed values to other places. It would let whoever may ask choose who reads a secret, so it needs what a
 * reveal needs: a grant of a user who may read secrets, good once, for exactly these places.
 */
export function resealRoute(keys: Keys, guard: GrantGuard, events: Events): Route {
  return route(kmsReseal, async (message, call) => {
    const { items } = message;
    const moves = items.map(({ from, to }) => ({ from: aadOf(from), to: aadOf(to) }));
    const [first] = items;
    const isOne = items.length === 1 && first !== undefined;
    const what = {
      ...{ endpoint: kmsReseal, message, call },
      reveals: items.map(({ from }) => from),
      objectRef: isOne ? pillarRef(first.from) : { resource: 'pillars' },
    };
    const record = (span: AuditSpan, work: () => Promise<Done>) =>
      onRecord(span, work, (done) => ({ ...placesOf(moves), ...outcomeAnnotations(done) }));
    const done = await guard(what, record, async () => {
      checkBatchBytes(items);
      await keys.prepare(items.length);
      return await answerEach(items, call, ({ from, to, enc }) => {
        checkOpenContext(from);
        checkSealContext(to);
        return resealValue(keys, { from: aadOf(from), to: aadOf(to) }, enc);
      });
    });
    events.itemsAnswered('reseal', done);
    return { items: done };
  });
}

type Done = ItemResult<Enc>[];

function placesOf(moves: readonly { from: string; to: string }[]): Record<string, string> {
  const named = moves.slice(0, RECORDED_PLACES).flatMap(({ from, to }, i) => [
    [`colonnade/from-${i}`, from.slice(0, 512).toWellFormed()],
    [`colonnade/to-${i}`, to.slice(0, 512).toWellFormed()],
  ]);
  return Object.fromEntries(named);
}

/** What a service does with kept values, on its own behalf and on record. */
function beginUpkeep(trail: Trail, verb: string, endpoint: Endpoint, call: Call): AuditSpan {
  return trail.begin({
    verb,
    endpoint,
    call,
    user: { username: 'pillar-api', groups: ['colonnade:services'] },
    caller: 'pillar-api',
    objectRef: { resource: 'pillars' },
  });
}

/** Says of kept values whether they still open where they stand; what is in them stays here. */
export function checkRoute(keys: Keys, trail: Trail, events: Events): Route {
  return route(kmsCheck, async ({ items }, call) => {
    const span = beginUpkeep(trail, 'check', kmsCheck, call);
    checkBatchBytes(items);
    const done: ItemResult<Record<string, never>>[] = await answerEach(items, call, ({ context, enc }) => {
      checkOpenContext(context);
      openValue(keys, aadOf(context), enc);
      return {};
    });
    events.itemsAnswered('check', done);
    await trail.later(span, { code: 200, annotations: outcomeAnnotations(done) }, call);
    return { items: done };
  });
}

/** Brings kept values under the key that seals now: what wraps them changes, not they and not their place. */
export function rewrapRoute(keys: Keys, trail: Trail, events: Events): Route {
  return route(kmsRewrap, async ({ items }, call) => {
    const span = beginUpkeep(trail, 'rewrap', kmsRewrap, call);
    await keys.prepare(items.length);
    const done: ItemResult<Wrapping>[] = await answerEach(items, call, ({ context, ...wrapping }) => {
      checkOpenContext(context);
      return rewrapDek(keys, aadOf(context), wrapping);
    });
    events.itemsAnswered('rewrap', done);
    await trail.later(span, { code: 200, annotations: outcomeAnnotations(done) }, call);
    return { items: done };
  });
}
