import type { ParsedEvent, Query, Skipped } from '@colonnade/audit-log';
import { usageError } from '../exit-codes.ts';
import type { OptionSpec } from '../table/command.ts';
import { TIME_OPTIONS, timeOf } from './time.ts';

/** Which records; the names are those of an audit.k8s.io/v1 Event. */
export const QUERY_OPTIONS = {
  user: { value: 'NAME', help: 'who asked' },
  verb: { value: 'VERB', help: 'what was done, such as create or reveal' },
  resource: { value: 'NAME', help: 'kind of object, such as pillars or pillars/reveal' },
  namespace: { value: 'NAME', help: 'its namespace: target type or collection' },
  name: { value: 'NAME', help: 'the object' },
  'audit-id': { value: 'ID', help: 'of one request, as the answer’s Audit-ID names it' },
  ...TIME_OPTIONS,
} satisfies Record<string, OptionSpec>;

export const LOG_OPTION = {
  log: { value: 'FILE', help: 'the audit log (default: COLONNADE_AUDIT_LOG)' },
} satisfies Record<string, OptionSpec>;

type QueryOptions = { [K in keyof typeof QUERY_OPTIONS]: string | undefined };

/** @throws ColonnadeError `misconfigured` naming a time that is none */
export function readQuery(options: QueryOptions, nowMs: number): Query {
  const { user, verb, resource, namespace, name, 'audit-id': auditID } = options;
  const [since, until] = [timeOf('since', options.since, nowMs), timeOf('until', options.until, nowMs)];
  const query = { user, verb, resource, namespace, name, auditID, since, until };
  return Object.fromEntries(Object.entries(query).filter(([, text]) => text !== undefined));
}

/** @throws ColonnadeError `misconfigured` when no log is named */
export function logPath(options: { log: string | undefined }, env: NodeJS.ProcessEnv): string {
  const file = options.log ?? env.COLONNADE_AUDIT_LOG;
  if (file) return file;
  throw usageError(
    'which audit log: give --log FILE, or set COLONNADE_AUDIT_LOG; it is on the host of audit-sink',
  );
}

/** What to tell of lines that are no part of the log. */
export function skippedNote({ file, lines }: Skipped): string {
  const what =
    lines === undefined
      ? 'has no journal, so it'
      : `has ${lines} lines that its journal does not know, which`;
  return `${file} ${what} is left out: see audit verify`.replace('which is', 'which are');
}

/** A record in one line for a person. */
export function eventLine(event: ParsedEvent): string {
  const object = (event.objectRef ?? {}) as Record<string, unknown>;
  const user = (event.user ?? {}) as Record<string, unknown>;
  const status = (event.responseStatus ?? {}) as Record<string, unknown>;
  const what = [object.resource, object.namespace, object.name, object.subresource].filter(Boolean).join('/');
  const words = [
    ...[event.stageTimestamp, event.stage, user.username ?? '-', event.verb, what || event.requestURI],
    ...[status.code ?? '-', event.auditID],
  ];
  return words.map(String).join('  ');
}
