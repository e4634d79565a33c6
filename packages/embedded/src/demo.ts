import type { ApiClient } from '@colonnade/api-client';
import { decodeTree, type Explanation, type Origin, zExplanation } from '@colonnade/contracts';
import { canonicalText, type Value } from '@colonnade/value';
import type { AskBridge } from './bridge-client.ts';

export type Demonstration = {
  master: string;
  minionId: string;
  durationMs: number;
  /** As the Salt master received it, secrets open. */
  pillar: { [name: string]: Value };
  explanation: Explanation;
};

/** Asks for one minion's pillar exactly as its Salt master does, and for the reasons as an operator does. */
export async function demonstrate(
  ask: AskBridge,
  api: ApiClient,
  master: string,
  minionId: string,
): Promise<Demonstration> {
  const startedMs = performance.now();
  const reply = await ask({ minionId, pillarenv: 'auto' });
  const durationMs = performance.now() - startedMs;
  if (!reply.ok) throw new Error(`the bridge answered ${reply.error.code}: ${reply.error.message}`);
  const query = new URLSearchParams({ master, minion_id: minionId, pillarenv: 'auto' });
  const explained = await api.call('GET', `/explain?${query}`);
  return {
    master,
    minionId,
    durationMs,
    pillar: reply.pillar as Demonstration['pillar'],
    explanation: decodeTree(zExplanation, explained.value),
  };
}

/** The merged pillar as a person reads it: each key, its value, the scope that won and those it overrode. */
export function renderDemonstration(demo: Demonstration): string {
  const lines = [
    `Merged pillar of ${demo.minionId}, as master ${demo.master} received it over Redis (master_get_pillar_data, ${demo.durationMs.toFixed(1)} ms):`,
    `  pillarenv ${demo.explanation.pillarenv}, clock ${demo.explanation.clock}`,
    '',
  ];
  for (const key of demo.explanation.keys) {
    const value = demo.pillar[key.name];
    lines.push(`  ${key.name}${key.is_secret ? '  (secret, sealed in the store)' : ''}`);
    lines.push(`    value     ${value === undefined ? 'missing' : canonicalText(value)}`);
    lines.push(`    won       ${scopeOf(key.winner)}`);
    for (const origin of key.overrode) lines.push(`    overrode  ${scopeOf(origin)}`);
  }
  return lines.join('\n');
}

function scopeOf(origin: Origin): string {
  return `${origin.tgt_type.padEnd(10)} ${origin.pillarenv}`;
}
