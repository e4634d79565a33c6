import { randomInt } from 'node:crypto';
import { cp } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createRandom } from '../support/random.ts';
import { waitFor } from '../support/wait-for.ts';
import { checkRun } from './checks/check-run.ts';
import type { StreamedEvent } from './checks/streams.ts';
import type { Truth } from './checks/truth.ts';
import { createHistory, type History, type Violation, violate } from './history.ts';
import { carryOut, watchEnd } from './inject.ts';
import { type FaultKind, planFaults, type Step } from './schedule.ts';
import { type StoreKind, type System, startSystem } from './system.ts';
import { canaryOf, MASTERS, MINIONS, makeEstate } from './workload/estate.ts';
import { createSender } from './workload/http.ts';
import { askOnce, type MasterOptions, runMaster } from './workload/master.ts';
import { runWriter } from './workload/writer.ts';

export type RunOptions = {
  seed: number;
  faults: number;
  store: StoreKind;
  /** No new step begins after this, milliseconds. */
  limitMs: number;
  report: (text: string) => void;
  /** A folder for the services' logs, should a promise be broken. */
  keepLogsIn?: string;
};

export type Outcome = {
  seed: number;
  store: StoreKind;
  faults: number;
  faultsByKind: Partial<Record<FaultKind, number>>;
  operations: Record<'ok' | 'refused' | 'unknown' | 'merges', number>;
  /** Events, audit records, versions, registers that were looked at. */
  checked: Record<string, number>;
  /** Errors that clients were given meanwhile, by code: what failing closed looks like. */
  refusals: Record<string, number>;
  longestRecoveryMs: number;
  seconds: number;
  violations: readonly Violation[];
  /** What was held against what. */
  evidence: { history: History; truth: Truth; events: readonly StreamedEvent[] };
};

const WRITERS = 3;
const ASKERS_PER_MASTER = 2;
const RECOVERY_LIMIT_MS = 60_000;
/** So often everything has to work again before the next step. */
const RECOVER_EVERY = 8;

/** One run: a fresh Colonnade, faults by a seed while clients work, and then every promise checked. */
export async function runFaults(options: RunOptions): Promise<Outcome> {
  const startedMs = performance.now();
  const { seed, store, report } = options;
  await using system = await startSystem(store);
  report(`${[...system.parts.keys()].join(', ')}; links ${[...system.links.keys()].join(', ')}`);
  const history = createHistory();
  const canary = canaryOf(randomInt(2 ** 31));
  for (const [name, part] of system.parts) watchEnd(name, part, history);
  const clients = await startClients(system, history, seed, canary);
  const done = await injectAll(options, system, history, clients.probe);
  await clients.stop();
  report('faults done; checking');
  const { checked, truth, events } = await checkRun(system, history, { canary, report });
  if (history.violations.length > 0 && options.keepLogsIn !== undefined) {
    await cp(path.join(system.stack.dir, 'logs'), options.keepLogsIn, { recursive: true });
    report(`the logs of the services: ${options.keepLogsIn}`);
  }
  const outcomes = (wanted: string) => history.operations.filter((o) => o.outcome === wanted).length;
  const merges = history.merges.length;
  return {
    ...{ seed, store, ...done, checked },
    operations: { ok: outcomes('ok'), refused: outcomes('refused'), unknown: outcomes('unknown'), merges },
    refusals: Object.fromEntries([...history.refusals].sort()),
    seconds: Math.round((performance.now() - startedMs) / 1000),
    violations: history.violations,
    evidence: { history, truth, events },
  };
}

async function startClients(system: System, history: History, seed: number, canary: string) {
  const stopping = new AbortController();
  const bridges = await Promise.all(MASTERS.map((id) => system.addMaster(id)));
  const fixed = await makeEstate(system.directApi);
  const send = createSender(system.api, history, canary);
  const shared = { history, canary, stop: stopping.signal };
  let client = 0;
  const next = () => ({ client: ++client, random: createRandom(seed * 1000 + client) });
  const writers = Array.from({ length: WRITERS }, () => runWriter({ ...shared, ...next(), send, fixed }));
  const asker = (at: number): MasterOptions => ({
    ...{ ...shared, ...next(), master: MASTERS[at] as string },
    ask: (bridges[at] as (typeof bridges)[number]).ask,
  });
  const askers = MASTERS.flatMap((_, at) =>
    Array.from({ length: ASKERS_PER_MASTER }, () => runMaster(asker(at))),
  );
  const probes = MINIONS.map((minion) => ({
    minion,
    options: asker(MASTERS.findIndex((id) => minion.startsWith(`${id}/`))),
  }));
  return {
    /** Whether every minion gets its pillar and a request is answered. */
    async probe(): Promise<boolean> {
      const merged = await Promise.all(probes.map(({ minion, options }) => askOnce(options, minion)));
      return merged.every(Boolean) && (await send('GET', '/masters')).outcome === 'ok';
    },
    async stop(): Promise<void> {
      stopping.abort();
      await Promise.all([...writers, ...askers]);
    },
  };
}

async function injectAll(
  { seed, faults: wanted, limitMs, report }: RunOptions,
  system: System,
  history: History,
  probe: () => Promise<boolean>,
) {
  const untilMs = performance.now() + limitMs;
  const faultsByKind: Outcome['faultsByKind'] = {};
  let [faults, longestRecoveryMs] = [0, 0];
  const recent: Step[] = [];
  const recover = async () => {
    const tookMs = await untilRecovered(system, history, probe, recent);
    longestRecoveryMs = Math.max(longestRecoveryMs, tookMs);
    recent.length = 0;
  };
  for (const step of planFaults(seed, wanted, system.targets)) {
    if (performance.now() > untilMs) break;
    await carryOut(step, system, history);
    await delay(step.calmMs);
    recent.push(step);
    for (const { kind } of step.faults) faultsByKind[kind] = (faultsByKind[kind] ?? 0) + 1;
    faults += step.faults.length;
    if (recent.length < RECOVER_EVERY) continue;
    await recover();
    report(`${faults} faults, ${history.operations.length} operations, ${history.merges.length} merges`);
  }
  await recover();
  return { faults, faultsByKind, longestRecoveryMs };
}

/** Everything is ready, and requests and merges are answered. @returns how long that took, milliseconds */
async function untilRecovered(
  system: System,
  history: History,
  probe: () => Promise<boolean>,
  recent: readonly Step[],
): Promise<number> {
  const startedMs = performance.now();
  const { kms, sink, hooks, api, mergers } = system.stack;
  const works = async () => {
    for (const { name, url } of [kms, sink, hooks, api, ...mergers]) {
      const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(5000) });
      if (!answer.ok) throw new Error(`${name}: ${await answer.text()}`);
    }
    return await probe();
  };
  await waitFor('everything to work again', works, { limitMs: RECOVERY_LIMIT_MS, everyMs: 50 }).catch(
    (error: Error) => violate(history, 'no recovery', `${error.message}; after ${JSON.stringify(recent)}`),
  );
  return Math.round(performance.now() - startedMs);
}
