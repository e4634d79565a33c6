import { setTimeout as delay } from 'node:timers/promises';
import type { Bus } from '@colonnade/bus';
import {
  type CloudEvent,
  ColonnadeError,
  cloudEventType,
  ESTATE_SOURCE,
  encode,
  eventMsgId,
  eventSubject,
  isEventType,
  startCall,
  toColonnadeError,
  zCloudEvent,
} from '@colonnade/contracts';
import type { EstateStore, Lease, OutboxRow } from '@colonnade/estate-store';
import type { Events } from './events.ts';

type RelayStore = Pick<
  EstateStore,
  'readOutbox' | 'dropOutbox' | 'acquireLease' | 'releaseLease' | 'snapshot'
>;
type RelayEvents = Pick<Events, 'relayed' | 'relayFailed' | 'relayLeads' | 'outboxSeen'>;

export type RelayOptions = {
  store: RelayStore;
  bus: Pick<Bus, 'publishDurable' | 'isConnected'>;
  events: RelayEvents;
  /** Unique among all processes on this store. */
  holder: string;
  /** Between looks when nobody wakes the relay, milliseconds. */
  pollMs: number;
  /** How long a dead relay keeps the others waiting, milliseconds. */
  leaseMs: number;
};

/** `wake` is for after a write; disposing publishes what is there, within two seconds, and gives the lease up. */
export type Relay = AsyncDisposable & { wake(): void };

export const RELAY_LEASE = 'outbox-relay';
const BATCH_ROWS = 100;
const MEASURED_ROWS = 1000;
const MEASURE_EVERY_MS = 1000;
const DRAIN_MS = 2000;
/** Between two tries to take a lease that another has: each is a write on the store. */
const ASK_AGAIN_MS = 1000;
const PUBLISH_BUDGET_MS = 5000;
const BACKOFF_MIN_MS = 100;
const BACKOFF_MAX_MS = 5000;
const NOTHING = { since: undefined, scopes: [], collections: false, masters: [], minions: [] };

/**
 * Publishes the outbox to the stream EVENTS: in clock order, one event after the other, each dropped only after its
 * acknowledgement. Of all processes on a store the one with the lease does it. A relay that dies between
 * acknowledgement and drop leaves a row that is published again, under the same id: the stream drops the duplicate
 * inside its window, and consumers go by the clock.
 */
export function startRelay(options: RelayOptions): Relay {
  const stopping = new AbortController();
  const bell = createBell();
  const state: RelayState = { lease: undefined, heldUntilMs: 0, askAgainAtMs: 0, measureAtMs: 0 };
  const running = run(options, state, bell, stopping.signal);
  return {
    wake: bell.ring,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      bell.ring();
      await running;
      if (state.lease === undefined) return;
      await options.store.releaseLease(RELAY_LEASE, options.holder).catch(() => {});
      options.events.relayLeads({ fence: undefined });
    },
  };
}

/** `heldUntilMs` is on this process's own clock, counted from before the lease was asked for. */
type RelayState = {
  lease: Lease | undefined;
  heldUntilMs: number;
  askAgainAtMs: number;
  measureAtMs: number;
};

async function run(options: RelayOptions, state: RelayState, bell: Bell, stop: AbortSignal): Promise<void> {
  let failures = 0;
  while (!stop.aborted) {
    try {
      const more = await relayRound(options, state, stop);
      failures = 0;
      if (!more) await bell.wait(options.pollMs);
    } catch (thrown) {
      failures += 1;
      const retryInMs = backoffMs(failures);
      options.events.relayFailed({ error: toColonnadeError(thrown), retryInMs });
      await giveUpLease(options, state);
      await delay(retryInMs, undefined, { signal: stop }).catch(() => {});
    }
  }
  await drain(options, state);
}

/** The events of the last writes should not wait for the next start. */
async function drain(options: RelayOptions, state: RelayState): Promise<void> {
  const late = AbortSignal.timeout(DRAIN_MS);
  try {
    let more = true;
    while (more && !late.aborted) more = await relayRound(options, state, late);
  } catch (thrown) {
    options.events.relayFailed({ error: toColonnadeError(thrown), retryInMs: 0 });
  }
}

/** One look at the outbox. @returns true when there is more to do at once */
async function relayRound(options: RelayOptions, state: RelayState, stop: AbortSignal): Promise<boolean> {
  await measure(options, state);
  if ((await options.store.readOutbox(1)).length === 0 || !(await holdLease(options, state))) return false;
  // Read under the lease: what the holder before us published and dropped must not come again.
  const rows = await options.store.readOutbox(BATCH_ROWS);
  const { clock } = await options.store.snapshot(NOTHING);
  let last: OutboxRow | undefined;
  try {
    for (const row of rows) {
      if (stop.aborted || performance.now() >= state.heldUntilMs) break;
      await publishRow(options, row, clock.incarnation);
      last = row;
    }
  } finally {
    if (last !== undefined && state.lease !== undefined) {
      await options.store.dropOutbox({ tick: last.tick, index: last.index }, state.lease);
    }
  }
  return rows.length > 0;
}

/** Every process tells how long the outbox is, the one that relays and those that do not. */
async function measure(options: RelayOptions, state: RelayState): Promise<void> {
  const nowMs = performance.now();
  if (nowMs < state.measureAtMs) return;
  state.measureAtMs = nowMs + MEASURE_EVERY_MS;
  const waiting = await options.store.readOutbox(MEASURED_ROWS);
  const [oldest] = waiting;
  const oldestAgeMs = oldest === undefined ? 0 : Math.max(0, Date.now() - oldest.timeMs);
  options.events.outboxSeen({ rows: waiting.length, oldestAgeMs });
}

/** Takes or renews the lease, well before it runs out. */
async function holdLease(options: RelayOptions, state: RelayState): Promise<boolean> {
  const askedMs = performance.now();
  // A publish that began in time may take its whole budget, and must still end under the lease.
  const marginMs = Math.min(options.leaseMs / 2, PUBLISH_BUDGET_MS);
  if (state.lease !== undefined && askedMs < state.heldUntilMs - options.leaseMs / 4) return true;
  if (state.lease === undefined && askedMs < state.askAgainAtMs) return false;
  const before = state.lease?.fence;
  state.lease = await options.store.acquireLease(RELAY_LEASE, options.holder, options.leaseMs);
  state.heldUntilMs = askedMs + options.leaseMs - marginMs;
  state.askAgainAtMs = askedMs + Math.min(ASK_AGAIN_MS, options.leaseMs / 4);
  if (state.lease?.fence !== before) options.events.relayLeads({ fence: state.lease?.fence });
  return state.lease !== undefined;
}

/** When the stream or the bus is away for this process, another one may still reach it. */
async function giveUpLease(options: RelayOptions, state: RelayState): Promise<void> {
  if (state.lease === undefined) return;
  state.lease = undefined;
  options.events.relayLeads({ fence: undefined });
  await options.store.releaseLease(RELAY_LEASE, options.holder).catch(() => {});
}

async function publishRow(options: RelayOptions, row: OutboxRow, incarnation: string): Promise<void> {
  // The client would keep the message and send it after a reconnect, when another may have gone on long since.
  if (!options.bus.isConnected()) throw new ColonnadeError('bus_unavailable', 'not connected to NATS');
  const { subject, event } = toCloudEvent(row, incarnation);
  const { duplicate } = await options.bus.publishDurable(
    // The acknowledgement of an earlier try may have been lost, with the process that waited for it.
    { subject, msgId: eventMsgId(event), payload: encode(zCloudEvent, event), allowDuplicate: true },
    startCall(PUBLISH_BUDGET_MS),
  );
  options.events.relayed({ duplicate });
}

/** The CloudEvent of an outbox row: the same, to the byte, every time it is made. */
function toCloudEvent(row: OutboxRow, incarnation: string): { subject: string; event: CloudEvent } {
  if (!isEventType(row.type))
    throw new ColonnadeError('internal', 'the outbox holds an event of an unknown type');
  const event: CloudEvent = {
    specversion: '1.0',
    id: `${incarnation}.${row.tick}.${row.index}`,
    source: ESTATE_SOURCE,
    type: cloudEventType(row.type),
    subject: row.subject,
    time: new Date(row.timeMs).toISOString(),
    datacontenttype: 'application/json',
    clock: String(row.tick),
    incarnation,
    data: row.data,
  };
  return { subject: eventSubject(row.type), event };
}

function backoffMs(failures: number): number {
  const ceiling = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** (failures - 1));
  return Math.round(ceiling * (0.5 + Math.random() / 2));
}

type Bell = { ring(): void; wait(timeoutMs: number): Promise<void> };

/** A ring that comes while nobody waits is not lost. */
function createBell(): Bell {
  let rung = false;
  let waiting: (() => void) | undefined;
  return {
    ring() {
      rung = true;
      waiting?.();
    },
    async wait(timeoutMs) {
      if (!rung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, timeoutMs);
          waiting = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      rung = false;
      waiting = undefined;
    },
  };
}
