import { setTimeout as sleep } from 'node:timers/promises';
import {
  ColonnadeError,
  decode,
  TASK_BEAT_SUBJECT,
  TASK_STATES_STALE_MS,
  taskOfSubject,
  zTaskEntry,
} from '@colonnade/contracts';

/** Which tasks live, as a service knows it that does not read the estate. */
export type TaskView = AsyncDisposable & {
  /**
   * @throws ColonnadeError `unauthorized` (unknown or ended), `unavailable` when the view is too old to say
   */
  requireLive(task: string): Promise<void>;
};

type Entry = { subject: string; seq: number; payload: Uint8Array };

export type TaskViewOptions = {
  /** Entries of the bucket behind a sequence. */
  read: (afterSeq: number) => Promise<readonly Entry[]>;
  /** Wall clock, for when a task expires, milliseconds since the epoch. */
  nowMs?: () => number;
  pollMs?: number;
  staleMs?: number;
  onFault?: (error: unknown) => void;
};

/**
 * Watches the bucket of task states. Its age is counted from when the last new beat was *seen* here, by this process's own
 * clock: two machines' clocks are never compared. Without a beat for `staleMs` nothing is let through.
 */
export function createTaskView(options: TaskViewOptions): TaskView {
  const {
    read,
    nowMs = Date.now,
    pollMs = 500,
    staleMs = TASK_STATES_STALE_MS,
    onFault = () => {},
  } = options;
  const stopped = new AbortController();
  let live = new Map<string, number | null>();
  let seq = 0;
  let beatAtMs = Number.NEGATIVE_INFINITY;
  let beatSeq: number | undefined;
  let turning: Promise<void> | undefined;

  const isStale = () => performance.now() - beatAtMs > staleMs;
  const turn = async (): Promise<void> => {
    // A bucket that was made anew counts from one again: what looks like silence may be that.
    if (isStale()) [seq, live] = [0, new Map()];
    const askedAtMs = performance.now();
    for (const entry of await read(seq)) {
      seq = entry.seq;
      if (entry.subject === TASK_BEAT_SUBJECT) noteBeat(entry.seq, askedAtMs);
      else apply(live, entry);
    }
  };
  // The first one there is may be as old as the bucket: only the next one says that somebody writes.
  const noteBeat = (beat: number, atMs: number): void => {
    if (beatSeq !== undefined && beat !== beatSeq) beatAtMs = atMs;
    beatSeq = beat;
  };
  const turnShared = (): Promise<void> => {
    turning ??= turn().finally(() => {
      turning = undefined;
    });
    return turning;
  };
  const loop = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      await turnShared().catch(onFault);
      await sleep(pollMs, undefined, { signal: stopped.signal, ref: false }).catch(() => undefined);
    }
  };
  const running = loop();

  return {
    async requireLive(task) {
      // One that was made a moment ago may be in the bucket and not here yet.
      if (isStale() || !live.has(task)) await turnShared().catch(onFault);
      if (isStale())
        throw new ColonnadeError('unavailable', 'which tasks live is not known: the view of them is too old');
      const expiresAtMs = live.get(task);
      if (expiresAtMs === undefined || (expiresAtMs !== null && expiresAtMs <= nowMs()))
        throw new ColonnadeError('unauthorized', 'the identity is refused: its task is unknown or has ended');
    },
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await running;
    },
  };
}

function apply(live: Map<string, number | null>, { subject, payload }: Entry): void {
  const task = taskOfSubject(subject);
  if (task === undefined) return;
  const entry = decode(zTaskEntry, payload);
  if (entry.live) live.set(task, entry.expires_at_ms);
  else live.delete(task);
}
