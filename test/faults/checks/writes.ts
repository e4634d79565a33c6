import { ABSENT, type History, type Operation, violate } from '../history.ts';
import type { StreamedEvent } from './streams.ts';
import type { Truth, Version } from './truth.ts';

/** Every acknowledged write is there, as it was acknowledged, once; a refused one is not. */
export function checkWrites(history: History, truth: Truth): void {
  for (const operation of history.operations) {
    if (operation.kind === 'read') continue;
    const versions = truth.get(operation.key) ?? [];
    if (operation.outcome === 'ok' && !isThere(operation, versions)) {
      violate(history, 'lost write', describe(operation));
    }
    const { value, outcome, kind } = operation;
    if (
      outcome === 'refused' &&
      kind === 'cas' &&
      value !== ABSENT &&
      versions.some(({ id }) => id === value)
    ) {
      violate(history, 'refused write applied', describe(operation));
    }
  }
  for (const [key, versions] of truth) {
    const made = versions.filter(({ op, id }) => (op === 'create' || op === 'update') && id !== '?');
    const twice = made.find(({ id }, i) => made.findIndex((other) => other.id === id) !== i);
    if (twice !== undefined) violate(history, 'write applied twice', `${key}: ${twice.id}`);
  }
}

function isThere({ value, tick, pid }: Operation, versions: readonly Version[]): boolean {
  if (value === ABSENT) return versions.some((version) => version.op === 'delete' && version.pid === pid);
  return versions.some((version) => version.id === value && version.tick === tick);
}

/** The outbox' promise: one event for each version, in the order of the clock, none for what never was, none twice. */
export function checkEvents(history: History, truth: Truth, events: readonly StreamedEvent[]): number {
  const ids = new Set<string>();
  const found = new Set<string>();
  let [lastTick, lastIndex] = [-1, -1];
  for (const { id, type, tick, data } of events) {
    if (ids.has(id)) violate(history, 'event twice', `${type} ${id}`);
    ids.add(id);
    const index = Number(id.slice(id.lastIndexOf('.') + 1));
    if (tick < lastTick || (tick === lastTick && index <= lastIndex)) {
      violate(history, 'events out of order', `${type} ${id} after tick ${lastTick}`);
    }
    [lastTick, lastIndex] = [tick, index];
    if (type.startsWith('pillar.')) found.add(`${type} ${data.pid} ${tick}`);
  }
  for (const [key, versions] of truth) {
    for (const { op, pid, tick } of versions) {
      if (op === 'set') continue;
      const event = `pillar.${op}d ${pid} ${tick}`;
      if (!found.has(event)) violate(history, 'lost event', `${event} of ${key}`);
    }
  }
  const known = new Set(
    [...truth.values()].flat().map(({ op, pid, tick }) => `pillar.${op}d ${pid} ${tick}`),
  );
  const pids = new Set([...truth.values()].flat().map(({ pid }) => pid));
  for (const { type, tick, data } of events) {
    const event = `${type} ${data.pid} ${tick}`;
    if (pids.has(String(data.pid)) && !known.has(event)) violate(history, 'event of nothing', event);
  }
  return events.length;
}

function describe({ key, kind, expect, value, outcome, client, tick, call }: Operation): string {
  const at = `client ${client} at ${(call / 1e6).toFixed(3)} s`;
  return `${key}: ${kind} "${expect}" -> "${value}" ${outcome}${tick === undefined ? '' : ` tick ${tick}`}, ${at}`;
}
