import {
  ColonnadeError,
  TLS_PLAN_STEPS,
  type TlsPlan,
  type TlsStep,
  toColonnadeError,
} from '@colonnade/contracts';
import type { ReconcileDeps } from './reconcile.ts';
import { dropAt } from './rules/trust-order.ts';
import { GRANT, readSource, type Source } from './source.ts';
import { type IngressTls, readSpec, type Spec } from './spec.ts';
import type { Status } from './status.ts';
import { servedSince, syncJobFor } from './sync-job.ts';

type PlanDeps = Pick<ReconcileDeps, 'client' | 'watches' | 'allowed' | 'sync' | 'roller'>;
type Found = Omit<TlsPlan, 'name' | 'steps_left_off'>;

const NOTHING: Found = { blocked: null, steps: [], nodes_done: 0, targets: {}, failures: [] };

/**
 * What a pass over an IngressTLS would do now, in its order: nodes, Secrets, old CAs. Reads as a pass does, and writes
 * nothing.
 * @throws ColonnadeError `unavailable` and the like: it cannot be told
 */
export async function planPass(ingress: IngressTls, deps: PlanDeps): Promise<TlsPlan> {
  const { steps, ...found } = await planAll(ingress, deps);
  return {
    ...{ name: ingress.metadata.name, ...found },
    steps: steps.slice(0, TLS_PLAN_STEPS),
    steps_left_off: Math.max(0, steps.length - TLS_PLAN_STEPS),
  };
}

async function planAll(ingress: IngressTls, deps: PlanDeps): Promise<Found> {
  const blocked = (reason: string, message: string): Found => ({ ...NOTHING, blocked: { reason, message } });
  if (ingress.metadata.deletionTimestamp !== undefined) return blocked('Deleting', 'it is on its way out');
  let spec: Spec;
  try {
    spec = readSpec(ingress, deps.allowed);
  } catch (thrown) {
    const { code, message } = toColonnadeError(thrown);
    return blocked(code === 'forbidden' ? 'NotAllowed' : 'SpecInvalid', message);
  }
  const found = await readSource(deps.client, spec);
  if (!found.ok) return blocked(found.reason, found.message);
  const { source } = found;
  const status = (ingress.status ?? {}) as Status;
  const nodes = await planNodes(ingress, deps, { spec, source, status });
  const job = await syncJobFor(ingress, spec, source, deps).catch((thrown: unknown) => {
    if (toColonnadeError(thrown).code === 'forbidden') return undefined;
    throw thrown;
  });
  if (job === undefined)
    return blocked('NotPermitted', `Secrets ${spec.secretName} may not be listed: ${GRANT}`);
  const secrets = deps.sync.plan(job);
  const changes = secrets.changes.map(({ namespace, does }): TlsStep => {
    const why = does === 'create' ? 'there is none' : 'its tls.crt or tls.key is not that of the source';
    return { kind: 'secret', name: namespace, does, why };
  });
  return {
    blocked: spec.paused ? { reason: 'Paused', message: 'nothing is begun' } : nodes.blocked,
    steps: [...nodes.steps, ...changes, ...dropOf(spec, source, status)],
    nodes_done: nodes.done,
    targets: secrets.counts,
    failures: [...secrets.failures],
  };
}

type Nodes = { steps: readonly TlsStep[]; done: number; blocked: Found['blocked'] };

async function planNodes(
  ingress: IngressTls,
  { roller }: PlanDeps,
  { spec, source, status }: { spec: Spec; source: Source; status: Status },
): Promise<Nodes> {
  const { apiServerOIDC: oidc } = spec;
  if (!oidc.enabled) return { steps: [], done: 0, blocked: null };
  try {
    const job = { ingress, oidc, source, servedSinceMs: servedSince(status, source), status };
    const { steps, stopped } = await roller.plan(job);
    const rows = steps.flatMap(({ name, does, why }): TlsStep[] =>
      does === 'done' ? [] : [{ kind: 'node', name, does, why }],
    );
    const held = rows.find(({ does }) => does === 'wait' || does === 'stop' || does === 'unreachable');
    const why =
      stopped === undefined
        ? held && `${held.name}: ${held.why}`
        : `${stopped.node}: ${stopped.step}: ${stopped.output}`;
    const reason = stopped === undefined ? 'NodesWait' : 'RolloutStopped';
    const done = steps.length - rows.length;
    return { steps: rows, done, blocked: why === undefined ? null : { reason, message: why } };
  } catch (thrown) {
    const error = toColonnadeError(thrown);
    if (error.retryable || error.code === 'internal') throw error;
    const reason = error.code === 'forbidden' ? 'NotAllowed' : 'NodesNotReachable';
    return { steps: [], done: 0, blocked: { reason, message: error.message } };
  }
}

function dropOf({ apiServerOIDC: oidc }: Spec, source: Source, status: Status): TlsStep[] {
  if (!oidc.enabled) return [];
  const seconds = oidc.dropOldCAAfterSeconds;
  const servedSinceMs = servedSince(status, source);
  const step = (why: string): TlsStep[] => [{ kind: 'old-ca', name: 'every node', does: 'drop', why }];
  if (servedSinceMs === undefined) return step(`${seconds} s after every Secret has changed`);
  const at = dropAt({ source: '', servedSinceMs, dropAfterMs: seconds * 1000, nowMs: Date.now() });
  return at === undefined ? [] : step(`at ${new Date(at).toISOString()}`);
}

/** @throws ColonnadeError `unavailable`: not listed yet; `not_found` */
export function findIngress({ watches }: Pick<PlanDeps, 'watches'>, name: string): IngressTls {
  if (!watches.ingresses.isSynced() || !watches.namespaces.isSynced())
    throw new ColonnadeError('unavailable', 'the API server has not been listed yet');
  const found = watches.ingresses.get(name);
  if (found === undefined) throw new ColonnadeError('not_found', `there is no IngressTLS ${name}`);
  return found;
}
