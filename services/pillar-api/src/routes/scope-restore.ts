import { ColonnadeError, zScopeRestore, zScopeRestored } from '@colonnade/contracts';
import type { Mutation, OutboxDraft } from '@colonnade/estate-store';
import type { z } from 'zod';
import type { Estate } from '../estate.ts';
import { pillarEvent } from '../estate-events.ts';
import { type Conditions, checkIfMatch, etagOf, requireIfMatch } from '../http/etag.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { checkBatch, loadScope, type ScopeChange, type ScopeChanges } from '../scope-changes.ts';
import { requireNamePermission } from './pillars.ts';

/**
 * `POST /scopes/restore`: a whole scope as it was at a clock or a time. First a dry run, which shows what would be made,
 * changed and deleted; then the same with its ETag as If-Match: what changed since makes it fail. All or nothing.
 */
export function scopeRestoreRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/scopes/restore',
    permission: 'pillar:write',
    scope: 'estate',
    floor: true,
    idempotency: 'ignored',
    body: zScopeRestore,
    response: zScopeRestored,
    async handle({ principal, body, conditions, call }) {
      const { pillarenv } = body;
      const dryRun = body.dry_run ?? false;
      if (!dryRun) requirePreview(conditions);
      const found = await loadScope({ store: estate.store, kms, call }, body);
      const { clock, changes } = found;
      const since = dryRun ? clock.tick : previewTick(conditions, pillarenv, clock);
      if (dryRun || countOf(changes) === 0) return answerWith(body, found, dryRun, clock);
      checkBatch(changes);
      for (const { now, past } of allOf(changes)) {
        for (const name of [now.name, past?.name ?? now.name]) requireNamePermission(principal, name);
      }
      const written = await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'scope.requireUnchanged', pillarenv, since }, ...mutationsOf(changes)],
        events: eventsOf(changes),
      });
      return answerWith(body, found, false, written.clock);
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

function allOf({
  create,
  update,
  remove,
}: ScopeChanges): (Pick<ScopeChange, 'now'> & Partial<ScopeChange>)[] {
  return [...create, ...update, ...remove.map((now) => ({ now }))];
}

function countOf(changes: ScopeChanges): number {
  return allOf(changes).length + changes.conflicts.length;
}

/** What goes makes room for what comes back under its name. */
function mutationsOf({ create, update, remove }: ScopeChanges): Mutation[] {
  return [
    ...remove.map((now): Mutation => ({ kind: 'pillar.delete', pid: now.pid, expectTick: now.tick })),
    ...[...update, ...create].map(({ past, now }): Mutation => {
      const { pid, tgtType, tgtId, pillarenv, name, value, isSecret } = past;
      const record = { pid, tgtType, tgtId, pillarenv, name, value, isSecret };
      return { kind: 'pillar.restore', expectTick: now.tick, record };
    }),
  ];
}

function eventsOf({ create, update, remove }: ScopeChanges): OutboxDraft[] {
  return [
    ...remove.map((now) => pillarEvent('pillar.deleted', now)),
    ...update.map(({ past }) => pillarEvent('pillar.updated', past)),
    ...create.map(({ past }) => pillarEvent('pillar.created', past)),
  ];
}

function answerWith(
  { pillarenv }: { pillarenv: string },
  { at, changes }: Awaited<ReturnType<typeof loadScope>>,
  dryRun: boolean,
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
  };
  return { status: 200, body, etag };
}
