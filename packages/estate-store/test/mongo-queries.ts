import type { CommandStartedEvent, Document } from 'mongodb';

export type RecordedQuery = {
  database: string;
  label: string;
  /** The `find` whose plan is that of the query. */
  find: Document;
};

/** Records what a store asks, each kind of question once. */
export function recordQueries() {
  const seen = new Map<string, RecordedQuery>();
  const actions = new Set<string>();
  return {
    record(event: CommandStartedEvent): void {
      for (const action of actionsOf(event.commandName, event.command)) {
        actions.add(`${event.command[event.commandName]} ${action}`);
      }
      for (const find of findsOf(event.commandName, event.command)) {
        const label = `${event.commandName} ${shapeOf(find)}`;
        if (!seen.has(label)) seen.set(label, { database: event.databaseName, label, find });
      }
    },
    all: (): readonly RecordedQuery[] => [...seen.values()],
    /** The rights that were made use of, as `collection action`. */
    actions: (): readonly string[] => [...actions].sort(),
  };
}

/** What a user must be allowed to do for this command on its collection. */
function actionsOf(name: string, command: Document): string[] {
  const upserts = [command, ...(command.updates ?? [])].some(({ upsert }) => upsert === true);
  const more = upserts ? ['insert'] : [];
  if (['find', 'aggregate', 'count'].includes(name)) return ['find'];
  if (name === 'findAndModify') return ['find', command.remove === true ? 'remove' : 'update', ...more];
  if (name === 'update') return ['find', 'update', ...more];
  if (name === 'delete') return ['find', 'remove'];
  return name === 'insert' ? ['insert'] : [];
}

/** The part of a command that looks for documents, as a `find` with the same hint. */
function findsOf(name: string, command: Document): Document[] {
  const { hint, sort } = command;
  const more = { ...(hint === undefined ? {} : { hint }), ...(sort === undefined ? {} : { sort }) };
  if (name === 'find') return [{ find: command.find, filter: command.filter, ...more }];
  if (name === 'findAndModify') return [{ find: command.findAndModify, filter: command.query, ...more }];
  if (name === 'aggregate') return [{ find: command.aggregate, filter: matchOf(command), ...more }];
  if (name === 'count') return [{ find: command.count, filter: command.query ?? {}, ...more }];
  if (name !== 'update' && name !== 'delete') return [];
  return [...(command.updates ?? []), ...(command.deletes ?? [])].map((one: Document) => ({
    find: command[name],
    filter: one.q,
    ...(one.hint === undefined ? {} : { hint: one.hint }),
  }));
}

/** All that comes after the first stage works on what that has found. @throws Error for a pipeline that begins otherwise */
function matchOf({ pipeline }: Document): Document {
  const [first] = pipeline as Document[];
  if (first?.$match === undefined) throw new Error('a pipeline must begin with $match');
  return first.$match;
}

function shapeOf(find: Document): string {
  const blank = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.slice(0, 1).map(blank);
    if (value === null || typeof value !== 'object' || '_bsontype' in value) return '?';
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, blank(one)]));
  };
  return JSON.stringify({ ...find, filter: mapOr(find.filter, blank) });
}

/** The branches of an `$or` have shapes of their own. */
function mapOr(filter: Document, blank: (value: unknown) => unknown): unknown {
  const { $or: branches, ...rest } = filter;
  return { ...(blank(rest) as object), ...(branches ? { $or: branches.map(blank) } : {}) };
}

/** The names of the stages of a plan that read something. */
export function leavesOf(plan: Document): string[] {
  const inner = [plan.inputStage, plan.queryPlan, plan.shards, ...(plan.inputStages ?? [])]
    .filter(Boolean)
    .flat();
  return inner.length === 0 ? [String(plan.stage)] : inner.flatMap(leavesOf);
}
