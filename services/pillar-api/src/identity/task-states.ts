import { setTimeout as sleep } from 'node:timers/promises';
import type { Bus } from '@colonnade/bus';
import {
  decode,
  encode,
  TASK_BEAT_SUBJECT,
  TASK_STATES_STREAM,
  taskOfSubject,
  taskStateSubject,
  zTaskBeat,
  zTaskEntry,
} from '@colonnade/contracts';
import { type EstateStore, isEndState, type TaskRecord } from '@colonnade/estate-store';

type StatesStore = Pick<EstateStore, 'listTasks' | 'getTask' | 'snapshot'>;

export type TaskStatesOptions = {
  store: StatesStore;
  bus: Pick<Bus, 'readEntries' | 'putEntry'>;
  /** Between two beats, well below what readers wait for, milliseconds. */
  beatMs?: number;
  nowMs?: () => number;
  onFault: (error: unknown) => void;
};

/** Tells services that do not read the estate which tasks live. */
export type TaskStates = AsyncDisposable & {
  /** After a write. */
  wake(): void;
  /** A task that was just made: who gets its token may use it at once. As good as it can be, for the next turn says it too. */
  announce(task: Pick<TaskRecord, 'id' | 'expiresAtMs'>): Promise<void>;
};

/** An end stays in the bucket for longer than any process can be late with what it knew before. */
const ENDED_KEEP_S = 3600;
const PAGE = 500;
const NOTHING = { scopes: [], collections: false, masters: [], minions: [] };
const MINUTE_MS = 60_000;

/**
 * Writes the bucket of task states. Every process on the store does, without a lease: an entry that says "lives" is only
 * ever made where there is none, and one that says "ended" replaces any, so no order of writers brings an ended task
 * back. A beat after each turn says that everything known by then is written.
 */
export function startTaskStates(options: TaskStatesOptions): TaskStates {
  const { beatMs = 1000, onFault } = options;
  const stopped = new AbortController();
  const state: State = { since: undefined, woken: new AbortController() };
  const loop = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      state.woken = new AbortController();
      await turn(options, state).catch((thrown) => {
        // What was written is not known: begin anew.
        state.since = undefined;
        onFault(thrown);
      });
      const signal = AbortSignal.any([stopped.signal, state.woken.signal]);
      await sleep(beatMs, undefined, { signal }).catch(() => undefined);
    }
  };
  const running = loop();
  return {
    wake: () => state.woken.abort(),
    announce: async (task) => {
      await putLive(options, task).catch(onFault);
    },
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await running;
    },
  };
}

type State = {
  /** The clock up to which all is written; undefined: nothing is known. */
  since: { incarnation: string; tick: number } | undefined;
  woken: AbortController;
};

async function turn(options: TaskStatesOptions, state: State): Promise<void> {
  const { store, bus } = options;
  const { clock, changed } = await store.snapshot({ ...NOTHING, since: state.since });
  if (state.since === undefined || changed === 'all') await writeAll(options);
  else await writeChanged(options, changed);
  state.since = clock;
  await bus.putEntry(TASK_BEAT_SUBJECT, encode(zTaskBeat, { v: 1, count: clock.tick }));
}

async function writeChanged(options: TaskStatesOptions, changed: readonly string[]): Promise<void> {
  for (const key of changed) {
    if (!key.startsWith('task:')) continue;
    const id = key.slice('task:'.length);
    const task = await options.store.getTask(id);
    if (task === undefined || !isLive(task, options)) await putEnded(options, id);
    else await putLive(options, task);
  }
}

/** Everything that lives, and the end of whatever else the bucket calls alive: a store may be older than the bucket. */
async function writeAll(options: TaskStatesOptions): Promise<void> {
  const { store, bus } = options;
  const live = new Set<string>();
  for (const state of ['created', 'running'] as const) {
    for (let after: string | undefined, more = true; more; more = after !== undefined) {
      const page = await store.listTasks({ state }, { after, limit: PAGE });
      for (const task of page.rows) {
        if (!isLive(task, options)) continue;
        live.add(task.id);
        await putLive(options, task);
      }
      after = page.next;
    }
  }
  for (const { subject, payload } of await bus.readEntries(TASK_STATES_STREAM, 0)) {
    const id = taskOfSubject(subject);
    if (id === undefined || live.has(id) || !decode(zTaskEntry, payload).live) continue;
    // Made since the list was read: only the store says what it is now.
    const task = await store.getTask(id);
    if (task === undefined || !isLive(task, options)) await putEnded(options, id);
  }
}

function isLive({ state, expiresAtMs }: TaskRecord, { nowMs = Date.now }: TaskStatesOptions): boolean {
  return !isEndState(state) && (expiresAtMs === undefined || expiresAtMs > nowMs());
}

async function putLive(
  { bus, nowMs = Date.now }: TaskStatesOptions,
  { id, expiresAtMs }: Pick<TaskRecord, 'id' | 'expiresAtMs'>,
): Promise<void> {
  const entry = encode(zTaskEntry, { v: 1, live: true, expires_at_ms: expiresAtMs ?? null });
  // It goes by itself when nobody ends it; later than it ends, since clocks differ.
  const ttlS =
    expiresAtMs === undefined
      ? {}
      : { ttlS: Math.ceil((expiresAtMs - nowMs() + MINUTE_MS) / 1000) + ENDED_KEEP_S };
  await bus.putEntry(taskStateSubject(id), entry, { ifAbsent: true, ...ttlS });
}

async function putEnded({ bus }: TaskStatesOptions, id: string): Promise<void> {
  const entry = encode(zTaskEntry, { v: 1, live: false, expires_at_ms: null });
  await bus.putEntry(taskStateSubject(id), entry, { ttlS: ENDED_KEEP_S });
}
