import { bundleHolds, hashOf, joinBundles } from './certificates.ts';

/** What a node's file has to hold in this pass, and whether that is the last one. */
export type NodeBundle = { text: string; hash: string };

export type TrustFacts = {
  /** The CA bundle of the source. */
  source: string;
  /** When every Secret was first seen to hold the source's certificate; undefined: not yet. */
  servedSinceMs: number | undefined;
  /** How long after that old CAs are still trusted. */
  dropAfterMs: number;
  nowMs: number;
};

/** Whether old CAs may go: everything the ingress serves has been of the new one for long enough. */
export function mayDropOld(facts: TrustFacts): boolean {
  return facts.servedSinceMs !== undefined && facts.nowMs - facts.servedSinceMs >= facts.dropAfterMs;
}

/**
 * The bundle for a node: first the new CA beside what the node trusts now, and only long after the Secrets have changed
 * the new one alone. So there is no moment at which an API server distrusts what the ingress serves.
 * @param present the node's file, empty: there is none
 */
export function bundleFor(facts: TrustFacts, present: string): NodeBundle {
  const text = mayDropOld(facts)
    ? bundleAfterwards(facts.source, present)
    : bundleDuringChange(facts.source, present);
  return { text, hash: hashOf(text) };
}

/** A file that already trusts the new CA is left as it is: every other text would cost a restart. */
function bundleDuringChange(source: string, present: string): string {
  return bundleHolds(present, source) ? present : joinBundles(source, present);
}

function bundleAfterwards(source: string, present: string): string {
  const same = bundleHolds(present, source) && bundleHolds(source, present);
  return same ? present : joinBundles(source, '');
}

/** When the old CAs are next to be dropped, milliseconds since 1970; undefined: nothing is waited for. */
export function dropAt(facts: TrustFacts): number | undefined {
  return facts.servedSinceMs === undefined || mayDropOld(facts)
    ? undefined
    : facts.servedSinceMs + facts.dropAfterMs;
}
