import type { ParsedEvent } from '@colonnade/audit-log';
import { goQuote } from './go-quote.ts';

type User = { username?: string; groups?: readonly string[] };

/** The one-line text of Kubernetes' `--audit-log-format=legacy` (k8s.io/apiserver pkg/audit, EventString). */
export function legacyLine(event: ParsedEvent): string {
  const user = (event.user ?? {}) as User;
  const impersonated = event.impersonatedUser as User | undefined;
  const { namespace } = (event.objectRef ?? {}) as { namespace?: string };
  const status = event.responseStatus as { code?: number } | undefined;
  const sourceIPs = (event.sourceIPs ?? []) as readonly string[];
  const name = user.username ? user.username : '<none>';
  const groups = user.username && user.groups?.length ? quoteAll(user.groups) : '<none>';
  const as = impersonated === undefined ? '<self>' : (impersonated.username ?? '');
  const asGroups = impersonated?.groups === undefined ? '<lookup>' : quoteAll(impersonated.groups);
  const fields: [string, string][] = [
    ['id', event.auditID],
    ['stage', event.stage],
    ['ip', sourceIPs[0] ?? '<unknown>'],
    ['method', text(event.verb)],
    ['user', name],
    ['groups', groups],
    ['as', as],
    ['asgroups', asGroups],
    ['user-agent', text(event.userAgent)],
    ['namespace', namespace ? namespace : '<none>'],
    ['uri', text(event.requestURI)],
  ];
  const response = status === undefined ? '<deferred>' : String(status.code ?? 0);
  const shown = fields.map(([key, value]) => `${key}=${goQuote(value)}`).join(' ');
  return `${goTime(text(event.requestReceivedTimestamp))} AUDIT: ${shown} response="${response}"`;
}

function quoteAll(texts: readonly string[]): string {
  return texts.map(goQuote).join(',');
}

function text(field: unknown): string {
  return typeof field === 'string' ? field : '';
}

/** Go's RFC3339Nano leaves out zeros at the end of the fraction. */
function goTime(time: string): string {
  return time.replace(/\.(\d*?)0*(?=Z|[+-]\d\d:\d\d$)/u, (_, digits: string) => (digits ? `.${digits}` : ''));
}
