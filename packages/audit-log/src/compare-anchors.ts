import path from 'node:path';
import type { AuditAnchor } from '@colonnade/contracts';
import type { Fault, Verification } from './verify.ts';
import type { Walk } from './verify-part.ts';

/** Where the chain stands after a record. */
export type Place = { head: string; seq: number; stream: string; storedAtNs: bigint };

/** Remembers which anchors a walk has met, and says at its end which of them it should have met. */
export type AnchorCheck = {
  /** @param opening the place belongs to what was before the file, so another head there is no contradiction */
  pass(place: Place, at: { file: string; line: number }, opening?: boolean): void;
  /** The log is the first of all, and its first record says that what was up to here stands elsewhere. */
  beginsAfter(place: Place): void;
  /** A gap record of the log leaps from one sequence to another: what is between them is lost, and the log says so. */
  leaps(from: Place, to: number): void;
  met(): number;
  /** Anchors from before the first place of the log; known after `judge`. */
  passedOver(): number;
  /** The first anchor that is missing or differs, once the walk has ended at `end`. */
  judge(logPath: string, walk: Pick<Walk, 'opened' | 'before'>, result: Verification): Fault | undefined;
};

/**
 * Anchors come in the order they were stored, and so do the places they vouch for: those before the first that agrees are older than
 * what is kept, since rotation removes files from the old end, unless their sequence and their time are those of what is kept; each one
 * after it must be met. The log may be ahead of the last
 * anchor, never behind it: what is anchored was written and synced.
 */
export function createAnchorCheck(anchors: readonly AuditAnchor[]): AnchorCheck {
  const keyOf = (stream: string, seq: number, head: string) => `${stream} ${seq} ${head}`;
  const wanted = new Map(anchors.map((a) => [keyOf(a.stream_created, a.seq, a.chain), a]));
  const anchored = new Set(anchors.map((a) => `${a.stream_created} ${a.seq}`));
  const met = new Set<string>();
  const passed = new Map<string, { file: string; line: number }>();
  const leaps: { stream: string; from: number; to: number }[] = [];
  let begun: Place | undefined;
  let older = 0;
  const isLeapt = ({ stream_created, seq }: AuditAnchor) =>
    leaps.some(({ stream, from, to }) => stream === stream_created && seq > from && seq <= to);
  return {
    pass({ stream, seq, head }, at, opening = false) {
      const place = `${stream} ${seq}`;
      if (!anchored.has(place)) return;
      const key = keyOf(stream, seq, head);
      if (wanted.has(key)) met.add(key);
      else if (!opening && !passed.has(place)) passed.set(place, at);
    },
    beginsAfter(place) {
      begun = place;
    },
    leaps({ stream, seq }, to) {
      leaps.push({ stream, from: seq, to });
    },
    met: () => met.size,
    passedOver: () => older,
    judge(logPath, { opened, before: end }, result) {
      const all = [...wanted];
      const first = all.findIndex(([key]) => met.has(key));
      const missed = all.flatMap(([key, anchor], i) =>
        met.has(key) || (i < first && isOlder(anchor, opened)) ? [] : [anchor],
      );
      older = all.length - met.size - missed.length;
      const differing = missed.find((a) => passed.has(`${a.stream_created} ${a.seq}`));
      const place = differing && passed.get(`${differing.stream_created} ${differing.seq}`);
      if (differing !== undefined && place !== undefined) {
        return { ...place, seq: differing.seq, what: 'anchor_differs' };
      }
      const file = path.basename(logPath);
      // What the log itself says is lost must not hide what it does not say.
      const missing = first >= 0 ? (missed.find((a) => !isLeapt(a)) ?? missed[0]) : findAhead(missed, end);
      if (missing !== undefined) return missingAnchor(file, missing, end, isLeapt(missing));
      if (first >= 0 || all.length === 0 || result.lines === 0) return undefined;
      const newest = missed.at(-1);
      // Begun since the last anchor, on an empty disk: the gap record is there to be seen.
      if (newest?.stream_created === begun?.stream && (newest?.seq ?? 0) <= (begun?.seq ?? -1)) {
        older = all.length;
        return undefined;
      }
      const detail = `none of ${all.length} anchors agrees with the log`;
      return { file, line: 0, seq: end?.seq ?? 0, what: 'no_anchor_agrees', detail };
    },
  };
}

/** Of the same stream a greater sequence is older only when it was given twice, and the log has it from the second time. */
function isOlder({ stream_created, seq, time }: AuditAnchor, opened: Place | undefined): boolean {
  if (opened === undefined || stream_created !== opened.stream || seq <= opened.seq) return true;
  return BigInt(Date.parse(time)) * 1_000_000n < opened.storedAtNs;
}

/** Where nothing agrees, only the newest anchor tells: older ones may be of files that rotation removed. */
function findAhead(anchors: readonly AuditAnchor[], end: Place | undefined): AuditAnchor | undefined {
  const newest = anchors.at(-1);
  if (end === undefined || newest === undefined) return newest;
  return newest.stream_created === end.stream && newest.seq > end.seq ? newest : undefined;
}

function missingAnchor(file: string, anchor: AuditAnchor, end: Place | undefined, leapt: boolean): Fault {
  const { seq, stream_created: stream } = anchor;
  const elsewhere = end !== undefined && stream !== end.stream ? ` of the stream made ${stream}` : '';
  const within = elsewhere === '' && end !== undefined && end.seq >= seq;
  const gone = leapt ? 'what was there is lost, as a gap record says' : 'no record ends there';
  const ends = within ? gone : `the log ends at ${end?.seq ?? 0}`;
  const detail = `${ends}, an anchor vouches for ${seq}${elsewhere}`;
  return { file, line: 0, seq, what: 'anchor_missing', detail };
}
