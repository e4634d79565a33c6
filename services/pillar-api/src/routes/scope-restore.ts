import { ColonnadeError, zScopeRestore, zScopeRestored } from '@colonnade/contracts';
import type { Mutation, OutboxDraft } from '@colonnade/estate-store';
import type { z } from 'zod';
import type { Estate } from '../estate.ts';
import { pillarEvent } from '../estate-events.ts';
import { type Conditions, checkIfMatch, etagOf, requireIfMatch } from '../http/etag.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import {
  arrange,
  checkFree,
  loadPart,
  type ScopeChange,
  type ScopeChanges,
  type ScopePart,
} from '../scope-changes.ts';
import { requireNamePermission } from './pillars.ts';

/**
 * `POST /scopes/restore`: a whole scope as it was at a clock or a time. First a dry run, which shows what would be made,
 * changed and deleted; then the same with its ETag as If-Match: what changed since makes it fail. Both go through a large
 * scope in parts, each one transaction: the ETag of a part is the If-Match of the next.
 */
export function scopeRestoreRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/scopes/restore',
    permission: 'pillar:write',
    scope: 'estate',
    idempotency: 'ignored',
    body: zScopeRestore,
    response: zScopeRestored,
    async handle({ principal, body, conditions, call }) {
      const { pillarenv } = body;
      const dryRun = body.dry_run ?? false;
      if (!dryRun) requirePreview(conditions);
      const deps = { store: estate.store, kms, call };
      const part = await loadPart(deps, body);
      const { clock, changes, at } = part;
      if (dryRun) return answerWith(body, part, { ...clock, tick: part.since ?? clock.tick });
      const since = previewTick(conditions, pillarenv, clock);
      if (countOf(changes) === 0) return answerWith(body, part, { ...clock, tick: since });
      checkFree(changes);
      const puts = await arrange(deps, { pillarenv, at }, changes);
      const { remove } = changes;
      for (const { now, past } of [...puts, ...remove.map((one) => ({ now: one, past: one }))]) {
        for (const name of [now.name, past.name]) requireNamePermission(principal, name);
      }
      const written = await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'scope.requireUnchanged', pillarenv, since }, ...mutationsOf(remove, puts)],
        events: eventsOf(remove, puts),
      });
      const update = puts.filter(({ now }) => now.op !== 'delete');
      return answerWith(body, { ...part, changes: { ...changes, update } }, written.clock);
    },
  });
}

type Clock = { incarnation: string; tick: number };

/** @throws ColonnadeError `precondition_required` */
function requirePreview(conditions: Conditions): void {
  if (Array.isArray(conditions.ifMatch)) return;
  if (conditions.ifMatch === undefined) requireIfMatch(conditions);
  const how = 'send If-Match with the ETag of a preview (dry_run), so that you restore what you have seen';
  throw new ColonnadeError('precondition_required', how, { field: 'If-Match' });
}

/**
 * The clock of the preview that If-Match names. Whether the scope is still what it was then is decided where it is
 * written; here it has to be a preview of this scope, in this life of the estate.
 */
function previewTick(conditions: Conditions, pillarenv: string, { incarnation, tick }: Clock): number {
  const tags = Array.isArray(conditions.ifMatch) ? conditions.ifMatch : [];
  const ticks = tags.map((tag) => Number(/\.(\d{1,15})"$/u.exec(tag)?.[1] ?? Number.NaN));
  const known = ticks.findLast((at) => at <= tick && tags.includes(etagOf(pillarenv, incarnation, at)));
  if (known === undefined) checkIfMatch(conditions, etagOf(pillarenv, incarnation, tick));
  return known ?? tick;
}

function countOf({ create, update, remove, conflicts }: ScopeChanges): number {
  return create.length + update.length + remove.length + conflicts.length;
}

/** What goes makes room for what comes back under its name. */
function mutationsOf(remove: ScopeChanges['remove'], puts: readonly ScopeChange[]): Mutation[] {
  return [
    ...remove.map((now): Mutation => ({ kind: 'pillar.delete', pid: now.pid, expectTick: now.tick })),
    ...puts.map(({ past, now }): Mutation => {
      const { pid, tgtType, tgtId, pillarenv, name, value, isSecret } = past;
      const record = { pid, tgtType, tgtId, pillarenv, name, value, isSecret };
      return { kind: 'pillar.restore', expectTick: now.tick, record };
    }),
  ];
}

function eventsOf(remove: ScopeChanges['remove'], puts: readonly ScopeChange[]): OutboxDraft[] {
  const typeOf = ({ now }: ScopeChange) => (now.op === 'delete' ? 'pillar.created' : 'pillar.updated');
  return [
    ...remove.map((now) => pillarEvent('pillar.deleted', now)),
    ...puts.map((one) => pillarEvent(typeOf(one), one.past)),
  ];
}

/** `clock`: of the first preview, or of the restore itself. */
function answerWith(
  { pillarenv, dry_run: dryRun = false }: z.output<typeof zScopeRestore>,
  { at, changes, next }: ScopePart,
  clock: Clock,
) {
  const etag = etagOf(pillarenv, clock.incarnation, clock.tick);
  const body: z.output<typeof zScopeRestored> = {
    ...{ pillarenv, at, clock: clock.tick, dry_run: dryRun, etag },
    create: changes.create.map(({ past }) => ({ pid: past.pid, name: past.name, version: past.tick })),
    update: changes.update.map(({ past, now }) => ({
      ...{ pid: past.pid, name: past.name, version: past.tick, now: now.tick },
    })),
    delete: changes.remove.map((now) => ({ pid: now.pid, name: now.name, now: now.tick })),
    unchanged: changes.unchanged,
    conflicts: [...changes.conflicts],
    next_cursor: next,
  };
  return { status: 200, body, etag };
}
