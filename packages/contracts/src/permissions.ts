import { AUDIT_STREAM, auditSubject } from './audit.ts';
import { AUDIT_ALERT_SUBJECT } from './audit-alerts.ts';
import {
  AUDIT_ANCHOR_STREAM,
  AUDIT_DEAD_STREAM,
  auditAnchorSubject,
  auditDeadSubject,
} from './audit-sink.ts';
import { CONSUMERS, makerRights, readerRights } from './consumers.ts';
import { BUS_USERS, type BusUser, type Endpoint } from './endpoints.ts';
import { estateListTouched, estateRegisterMinion } from './estate.ts';
import { EVENT_TYPES, EVENTS_STREAM, eventSubject } from './events.ts';
import {
  hooksGeneration,
  hooksGenerations,
  hooksHistory,
  hooksList,
  hooksPolicyDiff,
  hooksTry,
} from './hook-views.ts';
import { hooksGenerate, hooksRun } from './hooks.ts';
import { KEY_EVENT_TYPES } from './key-events.ts';
import * as kms from './kms.ts';
import * as keys from './kms-keys.ts';
import { mergerCompile, mergerExplain, mergerRefresh } from './merger.ts';
import {
  EVENTS_DEAD_STREAM,
  EVENTS_DEAD_SUBJECTS,
  SERVICE_EVENTS_STREAM,
  SERVICE_EVENTS_SUBJECTS,
} from './service-events.ts';
import { TASK_STATES_STREAM, TASK_STATES_SUBJECTS } from './task-states.ts';
import { TLS_EVENT_TYPES, tlsPlan, tlsStatus } from './tls.ts';
import { WORKLOAD_ENDPOINTS } from './workload.ts';

/** Every endpoint there is; rights, documents and tests are made from this list. */
export const ENDPOINTS: readonly Endpoint[] = [
  kms.kmsSeal,
  kms.kmsOpenForApi,
  kms.kmsVerifyForApi,
  kms.kmsReseal,
  kms.kmsCheck,
  kms.kmsRewrap,
  kms.kmsOpenForMerger,
  kms.kmsMac,
  kms.kmsPutReader,
  kms.kmsDeleteReader,
  kms.kmsIssueMaster,
  kms.kmsRevokeIdentity,
  keys.kmsListKeys,
  keys.kmsRotateKey,
  keys.kmsSetMinVersion,
  keys.kmsDestroyKey,
  keys.kmsUndestroyKey,
  kms.kmsJwks,
  ...WORKLOAD_ENDPOINTS,
  mergerExplain,
  estateRegisterMinion,
  hooksRun,
  hooksGenerate,
  hooksList,
  hooksTry,
  hooksHistory,
  hooksGenerations,
  hooksGeneration,
  hooksPolicyDiff,
  mergerCompile,
  mergerRefresh,
  estateListTouched,
  tlsStatus,
  tlsPlan,
];

/** Users that run as NATS micro services: they answer the operator's `$SRV` requests, also where they serve nothing else. */
export const SERVICES: ReadonlySet<BusUser> = new Set([
  'pillar-api',
  'pillar-merger',
  'crypto-kms',
  'hook-runner',
  'tls-rotator',
  'audit-sink',
]);

/** Of these, the ones that not every installation has: only where there is a Kubernetes cluster to rotate for. */
export const OPTIONAL_SERVICES: ReadonlySet<BusUser> = new Set(['tls-rotator']);

/** What a NATS user may publish and subscribe. Nothing else is allowed, and `allow_responses` is never used. */
export type BusRights = { publish: readonly string[]; subscribe: readonly string[] };

/** The inbox prefix of a user; replies to it go below and it may subscribe to no other. */
export function inboxPrefix(user: BusUser): string {
  return `_INBOX.${user}`;
}

/** The subjects a service may reply to: the inboxes of those who may ask it, the operator included. */
export function replyPrefixes(server: BusUser): readonly string[] {
  const callers = new Set(ENDPOINTS.filter((e) => e.server === server).flatMap((e) => e.callers));
  if (SERVICES.has(server)) callers.add('operator');
  return [...callers].map((caller) => `${inboxPrefix(caller)}.`);
}

const infoOf = (stream: string) => `$JS.API.STREAM.INFO.${stream}`;
const STREAM_INFO = [EVENTS_STREAM, AUDIT_STREAM].map(infoOf);
/** Every stream there is: only the provisioner makes them, and nobody empties or deletes one. */
export const STREAMS: readonly string[] = [
  EVENTS_STREAM,
  AUDIT_STREAM,
  AUDIT_DEAD_STREAM,
  AUDIT_ANCHOR_STREAM,
  TASK_STATES_STREAM,
  SERVICE_EVENTS_STREAM,
  EVENTS_DEAD_STREAM,
];

/** Reads entries of a stream one by one or many at once, without a consumer, which could deliver to any subject. */
function readEntries(stream: string): string {
  return `$JS.API.DIRECT.GET.${stream}`;
}

/** What a user publishes beside its requests and replies. */
const OWN_PUBLISH: Readonly<Record<BusUser, readonly string[]>> = {
  'pillar-api': [
    ...[...EVENT_TYPES.map(eventSubject), auditSubject('pillar-api'), ...STREAM_INFO],
    // What services outside hand in, and what of it is refused.
    ...[SERVICE_EVENTS_SUBJECTS, EVENTS_DEAD_SUBJECTS],
    // Which tasks live: it alone writes that, and reads it to take back what a process before it left.
    ...[TASK_STATES_SUBJECTS, readEntries(TASK_STATES_STREAM)],
  ],
  'pillar-merger': [auditSubject('pillar-merger')],
  'crypto-kms': [
    ...[auditSubject('crypto-kms'), readEntries(TASK_STATES_STREAM)],
    ...KEY_EVENT_TYPES.map(eventSubject),
  ],
  'audit-sink': [
    auditSubject('audit-sink'),
    auditDeadSubject('file'),
    auditDeadSubject('webhook'),
    auditDeadSubject('ingest'),
    auditAnchorSubject('file'),
    // How full the stream is, and which stream it is: it trims itself, and asks for no right to do so.
    infoOf(AUDIT_STREAM),
    AUDIT_ALERT_SUBJECT,
  ],
  'tls-rotator': [...TLS_EVENT_TYPES.map(eventSubject), auditSubject('tls-rotator')],
  'hook-runner': [auditSubject('hook-runner'), infoOf(EVENTS_STREAM)],
  // Reading the anchors is what `verify` stands on; they hold hashes, no records.
  operator: [
    '$SRV.>',
    '$JS.API.STREAM.NAMES',
    '$JS.API.STREAM.LIST',
    ...STREAMS.map(infoOf),
    // How far each reader is behind; that gives no right to read.
    ...CONSUMERS.map(({ stream, durable }) => `$JS.API.CONSUMER.INFO.${stream}.${durable}`),
    `$JS.API.DIRECT.GET.${AUDIT_ANCHOR_STREAM}`,
    // What nobody could take has to be read by somebody: records, in which secrets are masked, and refused events.
    ...[AUDIT_DEAD_STREAM, EVENTS_DEAD_STREAM].map(readEntries),
  ],
  provisioner: [
    ...STREAMS.flatMap((s) => [`$JS.API.STREAM.CREATE.${s}`, `$JS.API.STREAM.UPDATE.${s}`]),
    ...STREAMS.map(infoOf),
    ...CONSUMERS.flatMap(makerRights),
  ],
};

/** The rights of every NATS user. */
export function busRights(user: BusUser): BusRights {
  const asks = ENDPOINTS.filter((e) => e.callers.includes(user)).map((e) => e.subject);
  const answers = ENDPOINTS.filter((e) => e.server === user).map((e) => `${e.subject} ${user}`);
  const replies = replyPrefixes(user).map((prefix) => `${prefix}>`);
  const consumes = CONSUMERS.filter((c) => c.user === user).flatMap(readerRights);
  return {
    publish: [...asks, ...replies, ...OWN_PUBLISH[user], ...consumes],
    subscribe: [`${inboxPrefix(user)}.>`, ...answers, ...(SERVICES.has(user) ? ['$SRV.>'] : [])],
  };
}

/** All users with their rights. */
export function allBusRights(): ReadonlyMap<BusUser, BusRights> {
  return new Map(BUS_USERS.map((user) => [user, busRights(user)]));
}
