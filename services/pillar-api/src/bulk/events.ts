import type { OutboxDraft } from '@colonnade/estate-store';
import { fromPlain } from '@colonnade/value';
import { collectionEvent, masterEvent, minionEvent } from '../estate-events.ts';
import type { Planned } from './plan.ts';

/** Scopes told in one event: also with the longest names it fits a parameter of a hook. */
const SCOPES_PER_EVENT = 150;

/**
 * What an import leaves in the outbox: an event for each record that is no pillar, as always, and for all pillars
 * together `estate.imported`, which names the scopes that changed, in parts. A hundred thousand events of pillars would
 * keep everybody who listens busy for minutes; whoever wants to know compiles the scopes.
 */
export function createImportEvents(importId: string): {
  add(planned: Planned): void;
  drafts(): OutboxDraft[];
} {
  const scopes = new Set<string>();
  const others: OutboxDraft[] = [];
  const pillars = { created: 0, updated: 0 };
  return {
    add({ change, scope, event }) {
      if (event !== undefined) others.push(event);
      switch (change?.kind) {
        case 'collection.put':
          others.push(
            collectionEvent(
              `collection.${change.expect === 'absent' ? 'created' : 'updated'}`,
              change.record,
            ),
          );
          return;
        case 'master.put':
          others.push(
            masterEvent(`master.${change.expect === 'absent' ? 'registered' : 'updated'}`, change.record),
          );
          return;
        case 'minion.put':
          others.push(
            minionEvent(`minion.${change.expect === 'absent' ? 'registered' : 'updated'}`, change.record),
          );
          return;
        case 'pillar.create':
        case 'pillar.update':
          pillars[change.kind === 'pillar.create' ? 'created' : 'updated'] += 1;
          if (scope !== undefined) scopes.add(scope);
      }
    },
    drafts() {
      const all = [...scopes];
      const parts = Math.ceil(all.length / SCOPES_PER_EVENT);
      const told = Array.from({ length: parts }, (_, part) => {
        const some = all.slice(part * SCOPES_PER_EVENT, (part + 1) * SCOPES_PER_EVENT);
        const data = { import_id: importId, part: part + 1, parts, scopes: some, pillars: { ...pillars } };
        return { type: 'estate.imported', subject: '/import', data: fromPlain(data) };
      });
      return [...others, ...told];
    },
  };
}
