import { RETRY } from '../kube/objects.ts';
import { readIssuerCa, writeIssuerCa } from '../rules/auth-config.ts';
import { hashOf } from '../rules/certificates.ts';
import type { Journal } from '../rules/node-facts.ts';
import type { NodePlan } from '../rules/node-machine.ts';
import { bundleFor, type TrustFacts } from '../rules/trust-order.ts';
import { caFileOf, type OidcSpec } from '../spec.ts';
import type { PlanFor } from './look.ts';
import type { PlanJob, RollJob } from './roller.ts';

/** What decides whether old CAs go; `source` is the CA bundle of the source. */
export function trustOf(
  { oidc, servedSinceMs }: Pick<RollJob, 'oidc' | 'servedSinceMs'>,
  source: string,
): TrustFacts {
  return { source, servedSinceMs, dropAfterMs: oidc.dropOldCAAfterSeconds * 1000, nowMs: Date.now() };
}

/**
 * What a node is to become. Without a source, or where the spec has gone over to another file meanwhile, or where nothing
 * may be begun, it goes on to what it was begun with.
 * @throws ColonnadeError `unprocessable`: its authentication configuration cannot be changed, and why
 */
export function planFor(
  job: Pick<PlanJob, 'oidc' | 'source' | 'servedSinceMs' | 'finishOnly'>,
  { present, trusted, facts, begunWith }: Parameters<PlanFor>[0],
): ReturnType<PlanFor> {
  const { oidc, source } = job;
  const waits = waitsOf(oidc, begunWith === undefined ? undefined : facts.journal);
  const bundle = source?.facts.caBundle;
  const isBegun = begunWith !== undefined || (job.finishOnly === true && facts.journal !== undefined);
  if (bundle === undefined || isBegun) {
    const target = facts.journal?.target ?? facts.ca?.hash ?? '';
    return { ...waits, target, keyTarget: undefined, bundle: present };
  }
  const text = textFor(oidc, trustOf(job, bundle), trusted);
  return {
    ...waits,
    target: hashOf(text),
    keyTarget: source?.caKey === undefined ? undefined : hashOf(source.caKey),
    bundle: text,
  };
}

function waitsOf(oidc: OidcSpec, begun: Journal | undefined): Omit<NodePlan, 'target' | 'keyTarget'> {
  const { restart, reload } = oidc;
  const reloads = begun === undefined ? reload.enabled : begun.apply === 'reload';
  return {
    minWaitMs: restart.minimumWaitSeconds * 1000,
    goneTimeoutMs: restart.stopTimeoutSeconds * 1000,
    readyTimeoutMs: restart.readyTimeoutSeconds * 1000,
    file: begun?.file ?? caFileOf(oidc),
    reload: reloads
      ? { timeoutMs: reload.timeoutSeconds * 1000, otherwiseRestart: reload.restartWithoutMetric }
      : undefined,
  };
}

/** The file of the node: a bundle, or its configuration with the bundle in it. One that needs no change stays as it is. */
function textFor({ reload }: OidcSpec, trust: TrustFacts, present: string): string {
  if (!reload.enabled) return bundleFor(trust, present).text;
  const { issuerURL = '' } = reload;
  const now = readIssuerCa(present, issuerURL);
  const { text } = bundleFor(trust, now);
  return text === now ? present : writeIssuerCa(present, issuerURL, text);
}

/** What lets a rollout that stopped begin again: another spec, or the annotation. */
export function retryOf({ metadata }: RollJob['ingress']): string {
  return `${metadata.generation} ${metadata.annotations?.[RETRY] ?? ''}`;
}

/** What a stop is about: as long as it is the same, no node is begun. */
export function stopSign({ source, ingress }: Pick<RollJob, 'source' | 'ingress'>): string {
  return `${hashOf(source?.facts.caBundle ?? '').slice(0, 16)} ${retryOf(ingress)}`;
}
