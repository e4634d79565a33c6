import type { AuditOutcome, AuditRecorder } from '@colonnade/audit';
import {
  buildTlsEvent,
  encode,
  eventMsgId,
  eventSubject,
  type TlsEventType,
  toColonnadeError,
  zCloudEvent,
} from '@colonnade/contracts';
import { fromPlain } from '@colonnade/value';
import type { KubeClient } from '../kube/client.ts';
import { GROUP, VERSION } from '../kube/objects.ts';
import type { IngressTls } from '../spec.ts';
import type { ConditionType, NodeStatus, Status } from '../status.ts';
import type { Spool } from './spool.ts';

/** Tells of what was done: Kubernetes Events, events on the bus, audit records. None of it can stop the work. */
export type Recorder = {
  statusChanged(ingress: IngressTls, before: Status, after: Status): Promise<void>;
  secretsWritten(
    ingress: IngressTls,
    secretName: string,
    written: readonly { namespace: string; outcome: 'updated' | 'created' }[],
  ): Promise<void>;
  secretsDeleted(ingress: IngressTls, secretName: string, namespaces: readonly string[]): Promise<void>;
  /** Before a node is changed, and after. */
  nodeChanged(ingress: IngressTls, facts: { node: string; act: string; failure?: string }): Promise<void>;
  removed(ingress: IngressTls): Promise<void>;
};

export type RecorderDeps = {
  client: KubeClient;
  spool: Spool;
  auditor: AuditRecorder;
  /** Who we are in records: as the API server knows us. */
  username: string;
  failed: (what: string, error: unknown) => void;
};

type Note = { type: 'Normal' | 'Warning'; reason: string; message: string; event?: TlsEventType };

export function createRecorder(deps: RecorderDeps): Recorder {
  const tell = async (ingress: IngressTls, notes: readonly Note[]) => {
    await Promise.all(notes.map((note) => kubeEvent(deps, ingress, note)));
    await deps.spool.put(notes.flatMap((note) => busEvent(ingress, note) ?? []));
  };
  const secrets = (
    ingress: IngressTls,
    secretName: string,
    rows: readonly { namespace: string; verb: string }[],
  ) =>
    Promise.all(
      rows.map(({ namespace, verb }) =>
        record(deps, ingress, {
          verb,
          requestURI: `/api/v1/namespaces/${namespace}/secrets/${secretName}`,
          objectRef: { apiGroup: '', apiVersion: 'v1', resource: 'secrets', namespace, name: secretName },
          outcome: { code: verb === 'create' ? 201 : 200 },
        }),
      ),
    ).then(() => undefined);
  return {
    statusChanged: (ingress, before, after) => tell(ingress, notesOf(before, after)),
    secretsWritten: (ingress, secretName, written) =>
      secrets(
        ingress,
        secretName,
        written.map(({ namespace, outcome }) => ({
          namespace,
          verb: outcome === 'created' ? 'create' : 'patch',
        })),
      ),
    secretsDeleted: (ingress, secretName, namespaces) =>
      secrets(
        ingress,
        secretName,
        namespaces.map((namespace) => ({ namespace, verb: 'delete' })),
      ),
    nodeChanged: (ingress, { node, act, failure }) =>
      record(deps, ingress, {
        verb: act,
        requestURI: `/nodes/${node}/${act}`,
        objectRef: { apiGroup: GROUP, apiVersion: VERSION, resource: 'nodes', subresource: act, name: node },
        outcome: failure === undefined ? { code: 200 } : { code: 500, reason: 'failed', message: failure },
      }),
    removed: (ingress) =>
      tell(ingress, [{ type: 'Normal', reason: 'Finished', message: 'nothing is kept equal any more' }]),
  };
}

type Act = { verb: string; requestURI: string; objectRef: Record<string, string>; outcome: AuditOutcome };

async function record(
  { auditor, username, failed }: RecorderDeps,
  { metadata }: IngressTls,
  act: Act,
): Promise<void> {
  const { verb, requestURI, objectRef, outcome } = act;
  const user = { username, groups: ['system:serviceaccounts'] };
  const annotations = { [`${GROUP}/ingresstls`]: metadata.name, [`${GROUP}/uid`]: metadata.uid };
  const request = { verb, requestURI, user, userAgent: 'tls-rotator', objectRef };
  await auditor
    .begin(request)
    .completeBatched({ ...outcome, annotations })
    .catch((thrown: unknown) => failed('audit', thrown));
}

function busEvent({ metadata }: IngressTls, { event, reason, message }: Note) {
  if (event === undefined) return undefined;
  const { name, uid } = metadata;
  const built = buildTlsEvent(event, { name, uid }, fromPlain({ reason, message }));
  return { subject: eventSubject(event), msgId: eventMsgId(built), payload: encode(zCloudEvent, built) };
}

/** Events of a cluster's own object stand in the namespace `default`. */
async function kubeEvent(
  { client, failed }: RecorderDeps,
  { metadata }: IngressTls,
  note: Note,
): Promise<void> {
  const now = new Date().toISOString().replace(/\.\d+/u, '');
  const { type, reason, message } = note;
  const body = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { generateName: `${metadata.name}.`, namespace: 'default' },
    involvedObject: {
      kind: 'IngressTLS',
      apiVersion: `${GROUP}/${VERSION}`,
      name: metadata.name,
      uid: metadata.uid,
    },
    ...{ type, reason, message: message.slice(0, 1000), firstTimestamp: now, lastTimestamp: now, count: 1 },
    source: { component: 'tls-rotator' },
  };
  await client
    .request('POST', '/api/v1/namespaces/default/events', { body })
    .catch((thrown) => failed('event', toColonnadeError(thrown)));
}

/** What has become different, in words; what is as it was is not told again. */
export function notesOf(before: Status, after: Status): Note[] {
  const notes: Note[] = [];
  const was = conditionIn(before);
  const is = conditionIn(after);
  for (const node of after.nodes ?? []) {
    const old = before.nodes?.find(({ name }) => name === node.name);
    if (node.phase === 'Done' && old !== undefined && isAtWork(old)) {
      notes.push({
        type: 'Normal',
        reason: 'NodeRotated',
        message: `${node.name} runs with the CA bundle`,
        event: 'tls.node_rotated',
      });
    }
  }
  const written = (after.targets?.updated ?? 0) + (after.targets?.created ?? 0);
  if (written > 0 && is('SecretsSynced')?.status === 'True')
    notes.push({
      type: 'Normal',
      reason: 'SecretsSynced',
      message: `${written} Secrets written`,
      event: 'tls.secrets_synced',
    });
  const degraded = is('Degraded');
  if (degraded?.status === 'True' && degraded.reason !== was('Degraded')?.reason)
    notes.push({
      type: 'Warning',
      reason: degraded.reason,
      message: degraded.message,
      ...eventFor(degraded.reason),
    });
  if (degraded?.status === 'False' && was('Degraded')?.status === 'True')
    notes.push({
      type: 'Normal',
      reason: 'Recovered',
      message: 'everything is as it should be',
      event: 'tls.recovered',
    });
  return notes;
}

function isAtWork({ phase }: NodeStatus): boolean {
  return phase !== 'Done' && phase !== 'Pending' && phase !== 'Unreachable';
}

function conditionIn({ conditions = [] }: Status) {
  return (type: ConditionType) => conditions.find((c) => c.type === type);
}

function eventFor(reason: string): { event?: TlsEventType } {
  if (reason.startsWith('Source')) return { event: 'tls.source_refused' };
  if (reason === 'ExpiresSoon') return { event: 'tls.expires_soon' };
  return reason === 'RolloutStopped' ? { event: 'tls.rollout_stopped' } : {};
}
