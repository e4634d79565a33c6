import { ColonnadeError } from '@colonnade/contracts';
import { isAsNew, readNewestClock } from './clock.ts';
import type { Connection } from './connection.ts';
import { isConflict, isWorthRetrying, outdated } from './errors.ts';
import { pauseBefore } from './retry.ts';
import { type Group, runTransaction } from './transaction.ts';
import { createWriterEntry } from './unblock.ts';

/** Writes one thing inside a transaction. It is run again when the transaction is tried again. */
export type WriteJob<T> = (group: Group) => Promise<T>;

export type WriteQueue = {
  /**
   * Resolves after the commit.
   * @param options `long`: it takes seconds. It has a transaction of its own, and when others write meanwhile, it is tried
   *   again in such a way that they wait for it
   * @throws ColonnadeError, the job's own or `unavailable` | `overloaded`
   */
  run<T>(job: WriteJob<T>, options?: { long: boolean }): Promise<T>;
  /** Lets what was asked finish. */
  close(): Promise<void>;
};

type Waiting = {
  job: WriteJob<unknown>;
  long: boolean;
  resolve: (answer: never) => void;
  reject: (error: unknown) => void;
};

/** Jobs that wait at most; more are refused as `overloaded`, so that memory stays bounded. */
const MAX_WAITING = 4096;
/** A transaction takes no further job after so many, or after this long. */
const GROUP_JOBS = 64;
const GROUP_MS = 50;
/** Conflicts without a break for this long: another writer may have died within its transaction. */
const STUCK_MS = 1000;
/** A long job is not begun again after this. */
const LONG_MS = 180_000;

/**
 * Writes of one process, one transaction after the other: all of them write the clock, so at once they would only
 * conflict. Jobs that wait share a transaction; when one of them is refused, they are run again one by one.
 */
export function createWriteQueue(
  connection: Connection,
  options: { changeTicksKept: number; writeTimeoutMs: number },
): WriteQueue {
  const session = connection.client.startSession();
  const entry = createWriterEntry(connection, session);
  const waiting: Waiting[] = [];
  let pumping: Promise<void> | undefined;
  let closed = false;

  const commitGroup = (jobs: readonly Waiting[]): Promise<unknown[]> =>
    connection.use(async () => {
      await entry.renew();
      const long = jobs[0]?.long === true;
      await using _held = long ? await entry.hold() : undefined;
      const deadlineMs = performance.now() + (long ? LONG_MS : options.writeTimeoutMs);
      return await retry({ deadlineMs, long }, entry.unblock, (attempt) =>
        runTransaction(
          connection,
          session,
          { ...options, deadlineMs, claim: long && attempt > 0 },
          (group) =>
            jobs.length === 1
              ? runAlone(connection, group, jobs)
              : runJobs(group, jobs, GROUP_MS / 2 ** attempt),
        ),
      );
    });

  const pump = async () => {
    while (waiting.length > 0) {
      waiting.splice(0, await settle(nextGroup(waiting), commitGroup));
    }
    pumping = undefined;
  };
  return {
    async run(job, { long } = { long: false }) {
      if (closed) throw new ColonnadeError('unavailable', 'the estate store is closed');
      if (waiting.length >= MAX_WAITING) {
        throw new ColonnadeError('overloaded', 'too many writes wait for the estate store');
      }
      const { promise, resolve, reject } = Promise.withResolvers<never>();
      waiting.push({ job, long, resolve, reject });
      pumping ??= Promise.resolve().then(pump);
      return promise;
    },
    async close() {
      closed = true;
      await pumping;
      await entry.remove().catch(() => undefined);
      await session.endSession();
    },
  };
}

/** Those at the front that may share a transaction; a long one shares with nobody. */
function nextGroup(waiting: readonly Waiting[]): Waiting[] {
  if (waiting[0]?.long === true) return waiting.slice(0, 1);
  const end = waiting.findIndex(({ long }) => long);
  return waiting.slice(0, Math.min(GROUP_JOBS, end < 0 ? waiting.length : end));
}

/** Answers the jobs from the front that one transaction took, or one by one. Gives how many. */
async function settle(
  jobs: readonly Waiting[],
  commitGroup: (jobs: readonly Waiting[]) => Promise<unknown[]>,
): Promise<number> {
  try {
    const answers = await commitGroup(jobs);
    for (const [i, answer] of answers.entries()) jobs[i]?.resolve(answer as never);
    return answers.length;
  } catch (thrown) {
    if (jobs.length === 1 || (thrown as ColonnadeError).code === 'unavailable') {
      for (const { reject } of jobs) reject(thrown);
      return jobs.length;
    }
  }
  for (const one of jobs) await settle([one], commitGroup);
  return jobs.length;
}

/** @param longestMs takes no further job after this: shorter with each conflict, or two busy writers end none of theirs */
async function runJobs(group: Group, jobs: readonly Waiting[], longestMs = GROUP_MS): Promise<unknown[]> {
  const deadlineMs = performance.now() + longestMs;
  const answers: unknown[] = [];
  for (const { job } of jobs) {
    answers.push(await job(group));
    if (performance.now() > deadlineMs) break;
  }
  return answers;
}

/** A refusal counts only when it was decided on everything that is acknowledged. */
async function runAlone(connection: Connection, group: Group, jobs: readonly Waiting[]): Promise<unknown[]> {
  try {
    return await runJobs(group, jobs);
  } catch (thrown) {
    const isRefusal = thrown instanceof ColonnadeError && thrown.code !== 'unavailable';
    if (isRefusal && !isAsNew(group.clock, await readNewestClock(connection))) throw outdated();
    throw thrown;
  }
}

/** Tries again, until the deadline, what only came at the wrong moment. */
async function retry<T>(
  { deadlineMs, long }: { deadlineMs: number; long: boolean },
  unblock: () => Promise<void>,
  run: (attempt: number) => Promise<T>,
): Promise<T> {
  let stuckSinceMs: number | undefined;
  for (let attempt = 0; ; attempt++) {
    try {
      return await run(attempt);
    } catch (thrown) {
      if (!isWorthRetrying(thrown)) throw thrown;
      stuckSinceMs = isConflict(thrown) ? (stuckSinceMs ?? performance.now()) : undefined;
      if (stuckSinceMs !== undefined && performance.now() - stuckSinceMs > STUCK_MS) {
        await unblock();
        stuckSinceMs = undefined;
      }
      if (!(await pauseBefore(attempt, deadlineMs)))
        throw long && isConflict(thrown) ? crowdedOut(thrown) : thrown;
    }
  }
}

function crowdedOut(cause: unknown): ColonnadeError {
  const why =
    'others write to the estate all the time, and nothing of this was written: try again when they are fewer';
  return new ColonnadeError('unavailable', why, { cause });
}
