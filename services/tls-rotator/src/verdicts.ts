import type { RollResult } from './nodes/roller.ts';
import type { SyncResult } from './secrets/tally.ts';
import type { SourceResult } from './source.ts';
import type { ConditionType, Status, Verdict } from './status.ts';

/** What one pass found and did, as far as it came. */
export type Draft = {
  refused?: { reason: string; message: string };
  paused?: boolean;
  source?: SourceResult;
  nodes?: RollResult;
  secrets?: SyncResult;
  /** Why the Secrets could not even be looked at. */
  denied?: string;
  trust?: { fingerprint: string; servedSince: string; dropOldAt?: string; againMs?: number };
  /** Milliseconds. */
  againMs?: number | undefined;
};

type Verdicts = Record<ConditionType, Verdict>;

/** Long enough for a person to order a new certificate. */
export const EXPIRY_WARNING_MS = 21 * 24 * 60 * 60_000;

/** The status of a pass, of which what it did not come to stays as it was, and what the conditions say. */
export function judge(before: Status, draft: Draft): { fields: Status; verdicts: Verdicts } {
  const { refused, source, nodes, secrets, trust } = draft;
  const facts = source?.ok ? source.source.facts : undefined;
  const fields: Status = {
    ...pick(before, ['source', 'targets', 'failures', 'nodes', 'trust']),
    ...(facts === undefined
      ? {}
      : {
          source: { fingerprint: facts.leafFingerprint, notAfter: new Date(facts.notAfterMs).toISOString() },
        }),
    ...(secrets === undefined ? {} : { targets: secrets.counts, failures: secrets.failures }),
    ...(nodes === undefined ? {} : { nodes: nodes.nodes }),
    ...(nodes?.stopped === undefined ? {} : { stopped: nodes.stopped }),
  };
  if (trust !== undefined) {
    const { againMs: _, ...kept } = trust;
    fields.trust = kept;
  }
  if (refused === undefined && nodes === undefined && source !== undefined) delete fields.nodes;
  const synced = secretsVerdict(draft);
  const rotated = nodesVerdict(draft);
  return {
    fields,
    verdicts: {
      Ready: readyVerdict(draft, synced, rotated),
      SecretsSynced: synced,
      APIServersRotated: rotated,
      Degraded: degradedVerdict(draft),
    },
  };
}

function pick(status: Status, keys: readonly (keyof Status)[]): Status {
  return Object.fromEntries(keys.filter((key) => status[key] !== undefined).map((key) => [key, status[key]]));
}

function secretsVerdict({ refused, paused, source, nodes, secrets, denied }: Draft): Verdict {
  if (refused !== undefined) return { status: 'False', ...refused };
  if (source !== undefined && !source.ok)
    return { status: 'False', reason: source.reason, message: source.message };
  if (paused) return { status: 'Unknown', reason: 'Paused' };
  if (denied !== undefined) return { status: 'False', reason: 'NotPermitted', message: denied };
  if (secrets === undefined) {
    const why =
      nodes?.state === 'stopped'
        ? 'the rollout of the CA has stopped'
        : 'the nodes have to trust the new CA first';
    return { status: 'False', reason: 'WaitingForNodes', message: why };
  }
  const { failed, contested, conflict } = secrets.counts;
  const [first] = secrets.failures;
  const message = first === undefined ? '' : `${first.namespace}: ${first.reason}`;
  if (failed > 0) return { status: 'False', reason: 'TargetsFailed', message };
  if (contested > 0) return { status: 'False', reason: 'Contested', message };
  if (conflict > 0) return { status: 'False', reason: 'Conflict', message };
  return { status: 'True', reason: 'Synced' };
}

function nodesVerdict({ refused, source, nodes, paused }: Draft): Verdict {
  if (refused !== undefined) return { status: 'Unknown', ...refused };
  if (nodes !== undefined) {
    const { state, reason, message } = nodes;
    return { status: state === 'done' ? 'True' : 'False', reason, message };
  }
  if (source !== undefined && !source.ok)
    return { status: 'Unknown', reason: source.reason, message: source.message };
  return { status: paused ? 'Unknown' : 'True', reason: paused ? 'Paused' : 'NotAskedFor' };
}

function readyVerdict({ paused }: Draft, synced: Verdict, rotated: Verdict): Verdict {
  if (paused) return { status: 'False', reason: 'Paused' };
  const wrong = [rotated, synced].find(({ status }) => status !== 'True');
  if (wrong === undefined) return { status: 'True', reason: 'Rotated' };
  return { ...wrong, status: 'False' };
}

/** Something a person has to look at, as against something that takes its time. */
function degradedVerdict({ refused, source, nodes, secrets, denied }: Draft): Verdict {
  if (refused !== undefined) return { status: 'True', ...refused };
  if (source !== undefined && !source.ok)
    return { status: 'True', reason: source.reason, message: source.message };
  if (nodes?.state === 'stopped') return { status: 'True', reason: nodes.reason, message: nodes.message };
  if (denied !== undefined) return { status: 'True', reason: 'NotPermitted', message: denied };
  const counts = secrets?.counts;
  if (counts !== undefined && counts.failed + counts.contested + counts.conflict > 0)
    return {
      status: 'True',
      reason: 'TargetsNotEqual',
      message: `${secrets?.failures[0]?.namespace}: ${secrets?.failures[0]?.reason}`,
    };
  if (source?.ok && source.source.facts.notAfterMs - Date.now() < EXPIRY_WARNING_MS)
    return {
      status: 'True',
      reason: 'ExpiresSoon',
      message: `a certificate of the source expires at ${new Date(source.source.facts.notAfterMs).toISOString()}`,
    };
  return { status: 'False', reason: 'AsExpected' };
}
