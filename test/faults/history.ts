/** What a value of the run is called; `''`: there is none. Every write writes another one. */
export type ValueId = string;
export const ABSENT: ValueId = '';

/** One call of one client on one register, as the client saw it. Times are microseconds of one clock. */
export type Operation = {
  client: number;
  /** The register: a pillar at its place, or the membership of a minion. */
  key: string;
  /** A `cas` changes `expect` into `value`: creating expects nothing, deleting leaves nothing. */
  kind: 'read' | 'cas' | 'set';
  expect: ValueId;
  value: ValueId;
  /** `unknown`: no answer, or one that leaves it open. */
  outcome: 'ok' | 'refused' | 'unknown';
  call: number;
  return: number;
  /** Of the pillar, where it is known. */
  pid?: string;
  /** The clock the answer named. */
  tick?: number;
  /** The id under which the request that had this outcome is on record. */
  auditId?: string;
};

/** A merged pillar as a master got it. */
export type Merge = {
  client: number;
  minion: string;
  call: number;
  return: number;
  clock: number;
  /** By register, of all that the minion should see. */
  seen: ReadonlyMap<string, ValueId>;
};

/** An HTTP request whose answer promises that something of it is on record. */
export type Recorded = { auditId: string; stages: readonly string[]; what: string };

export type Violation = {
  /** Which promise: a constant word. */
  kind: string;
  detail: string;
};

/** Everything the clients of a run saw. */
export type History = {
  operations: Operation[];
  merges: Merge[];
  recorded: Recorded[];
  /** Answers that were errors, by code: a master's, and those of HTTP. */
  refusals: Map<string, number>;
  violations: Violation[];
  /** When NATS was ended, milliseconds since 1970. */
  natsEndedAtMs: number[];
  /** Which secret a pid holds, where an answer showed it. */
  secretOf: Map<string, ValueId>;
  /** Every pid any answer named, with its register. */
  keyOf: Map<string, string>;
};

export function createHistory(): History {
  return {
    operations: [],
    merges: [],
    recorded: [],
    refusals: new Map(),
    violations: [],
    natsEndedAtMs: [],
    secretOf: new Map(),
    keyOf: new Map(),
  };
}

/** A moment, rounded so that an interval is never shorter than it was. */
export const callTime = (): number => Math.floor(performance.now() * 1000);
export const returnTime = (): number => Math.ceil(performance.now() * 1000);

export function count(map: Map<string, number>, key: string): void {
  map.set(key, (map.get(key) ?? 0) + 1);
}

/** Notes what was wrong; one kind is told in full a few times only. */
export function violate(history: History, kind: string, detail: string): void {
  history.violations.push({ kind, detail });
}
