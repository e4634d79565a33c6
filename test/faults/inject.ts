import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import type { RunningServer } from '@colonnade/embedded/servers';
import { type History, violate } from './history.ts';
import type { Fault, Step } from './schedule.ts';
import type { System } from './system.ts';

const START_LIMIT_MS = 60_000;
const START_AGAIN_MS = 200;

/** Does what a step says and returns when every fault of it is over: processes run again, connections may stand. */
export async function carryOut(step: Step, system: System, history: History): Promise<void> {
  await Promise.all(step.faults.map((fault) => carryOutOne(fault, system, history)));
}

async function carryOutOne({ kind, target, ms }: Fault, system: System, history: History): Promise<void> {
  if (kind === 'lock') return await holdLock(system.stack.storePath, ms);
  if (kind === 'cut' || kind === 'stall') {
    const link = found(system.links, target);
    if (kind === 'cut') link.cut();
    else link.stall();
    await delay(ms);
    return link.heal();
  }
  const part = found(system.parts, target);
  if (kind === 'pause') {
    await part.kill('SIGSTOP');
    await delay(ms);
    return await part.kill('SIGCONT');
  }
  if (target === 'nats') history.natsEndedAtMs.push(Date.now());
  if (kind === 'kill') {
    await part.kill('SIGKILL');
    await delay(ms);
  }
  await bringBack(target, part, history);
}

/** Starts a part again as a supervisor does: a service that does not find the bus ends, and is started once more. */
async function bringBack(name: string, part: RunningServer, history: History): Promise<void> {
  const untilMs = performance.now() + START_LIMIT_MS;
  for (;;) {
    const fault = await part.restart().then(
      () => undefined,
      (error: Error) => error,
    );
    if (fault === undefined) return watchEnd(name, part, history);
    if (performance.now() > untilMs) throw new Error(`${name} does not start again`, { cause: fault });
    await delay(START_AGAIN_MS);
  }
}

/** A process that ends without having been told to is a violation, and is started again. */
export function watchEnd(name: string, part: RunningServer, history: History): void {
  void part.endedByItself().then(({ code, signal }) => {
    violate(history, 'ended by itself', `${name}: ${signal ?? `exit code ${code}`}`);
    bringBack(name, part, history).catch((error: Error) => violate(history, 'no recovery', error.message));
  });
}

/** Another program holds the file's write lock, as a backup or a person with a shell might. */
async function holdLock(file: string, ms: number): Promise<void> {
  const database = new DatabaseSync(file, { timeout: 5000 });
  try {
    database.exec('BEGIN IMMEDIATE');
    await delay(ms);
    database.exec('ROLLBACK');
  } finally {
    database.close();
  }
}

function found<T>(map: ReadonlyMap<string, T>, name: string): T {
  const one = map.get(name);
  if (one === undefined) throw new Error(`there is no ${name}`);
  return one;
}
