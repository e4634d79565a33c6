import {
  type Call,
  ColonnadeError,
  kmsOpenForMerger,
  masterSubject,
  toColonnadeError,
} from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { z } from 'zod';
import { answerEach, checkBatchBytes, type ItemResult, outcomeAnnotations } from './batch.ts';
import { aadOf, checkMergeScope } from './context.ts';
import { type Keys, openValue } from './envelope.ts';
import type { Events } from './events.ts';
import type { MasterTokens } from './master-token.ts';
import type { RateLimit } from './rate-limit.ts';
import { failure, type Trail, verifyOnRecord } from './trail.ts';

type Request = z.output<typeof kmsOpenForMerger.request>;
type Response = z.output<typeof kmsOpenForMerger.response>;

export type MergerOpenDeps = {
  keys: Keys;
  tokens: MasterTokens;
  limit: RateLimit;
  trail: Trail;
  events: Events;
};

/** Opens what one merge needs, under the token of the master that asked for it. */
export function createMergerOpenHandler(deps: MergerOpenDeps) {
  const { keys, tokens, limit, trail, events } = deps;
  const begin = (user: { username: string; groups: readonly string[] }, request: Request, call: Call) =>
    trail.begin({
      verb: 'open',
      endpoint: kmsOpenForMerger,
      call,
      user,
      caller: 'pillar-merger',
      objectRef: { resource: 'minions', namespace: request.master, name: request.minion_id },
    });

  return async (request: Request, call: Call): Promise<Response> => {
    const { master, minion_id } = request;
    await verifyOnRecord(
      (user) => begin(user, request, call),
      () => tokens.verify(request.token, master),
    );
    const span = begin({ username: masterSubject(master), groups: ['colonnade:masters'] }, request, call);
    let items: ItemResult<Value>[];
    try {
      checkLimits(request, limit);
      items = await answerEach(request.items, call, ({ context, enc }) => {
        checkMergeScope(context, master, minion_id);
        return openValue(keys, aadOf(context), enc);
      });
    } catch (thrown) {
      await span.complete(failure(toColonnadeError(thrown)));
      throw thrown;
    }
    events.itemsAnswered('open.merger', items);
    const outcome = {
      code: 200,
      annotations: { ...outcomeAnnotations(items), ...refusedScopes(request, items) },
    };
    if (items.some((item) => !item.ok && item.error.code === 'kms_refused'))
      await span.complete({ ...outcome, code: 403, reason: 'kms_refused' });
    else await trail.later(span, outcome, call);
    return { items };
  };
}

function checkLimits(request: Request, limit: RateLimit): void {
  checkBatchBytes(request.items);
  if (!limit.take(request.master, request.items.length)) {
    throw new ColonnadeError('rate_limited', 'the master asks for more items per second than it may');
  }
}

/** The first few scopes that were refused, so that the record says what was tried. */
function refusedScopes(request: Request, items: readonly ItemResult<Value>[]): Record<string, string> {
  const scopes = request.items.flatMap(({ context }, at) => {
    const item = items[at];
    return item !== undefined && !item.ok && item.error.code === 'kms_refused'
      ? [aadOf(context).slice(0, 512)]
      : [];
  });
  return Object.fromEntries(
    scopes.slice(0, 5).map((scope, at) => [`colonnade/refused-${at}`, scope.toWellFormed()]),
  );
}
