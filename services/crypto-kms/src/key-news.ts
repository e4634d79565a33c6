import { buildOwnEvent, type CloudEvent, int, KEYS_SOURCE, type KeyEventType } from '@colonnade/contracts';
import { z } from 'zod';
import type { Keyring, KeyVersion } from './keyring/keyring.ts';
import { zKeyName } from './keyring/version.ts';

/** What a version goes through, in this order. Only a destroyed one may be retired again. */
const PHASES = ['prepublished', 'active', 'retired', 'destroyed', 'erased'] as const;
type Phase = (typeof PHASES)[number];

const REACHED = {
  prepublished: 'key.rotated',
  active: 'key.activated',
  retired: 'key.retired',
  destroyed: 'key.destroyed',
  erased: 'key.erased',
} as const satisfies Record<Phase, KeyEventType>;

/** What of a key the bus has been told: one file, shared by all replicas. */
export const zToldKey = z.strictObject({
  format: z.literal('colonnade-key-told/1'),
  name: zKeyName,
  /** How often there was something to tell: in the ids of what can happen twice. */
  number: int({ min: 0 }),
  min_version: int({ min: 1 }),
  versions: z.array(
    z.strictObject({
      version: int({ min: 1 }),
      phase: z.enum(PHASES),
      destroyed_at_ms: int({ min: 0 }).nullable(),
    }),
  ),
});
export type ToldKey = z.output<typeof zToldKey>;
type ToldVersion = ToldKey['versions'][number];

type Seen = Pick<Keyring, 'name' | 'versions' | 'minVersion'>;

/**
 * What has become of a key since the bus was told last, and what it has been told with that. The same news have the same ids,
 * whichever replica tells them and however often. Of a key of which nothing was told yet there are none: that is where telling begins.
 */
export function newsOf(
  told: ToldKey | undefined,
  keyring: Seen,
  nowMs: number,
): { news: CloudEvent[]; told: ToldKey } {
  const versions = keyring.versions();
  const before = new Map(told?.versions.map((one) => [one.version, one]));
  const news: CloudEvent[] = [];
  const after = versions.map((version) => {
    const is = toldOf(version, nowMs);
    const was = before.get(version.version);
    if (told !== undefined)
      news.push(...stepsOf(was, is).map((type) => versionEvent(type, keyring, version, was, nowMs)));
    return isBehind(was, is) ? was : is;
  });
  news.sort((a, b) => Date.parse(a.time) - Date.parse(b.time));
  const minVersion = keyring.minVersion();
  if (told !== undefined && minVersion !== told.min_version)
    news.push(minVersionEvent(keyring, told, minVersion));
  const number = (told?.number ?? 0) + (news.length === 0 ? 0 : 1);
  const format = 'colonnade-key-told/1';
  return { news, told: { format, name: keyring.name, number, min_version: minVersion, versions: after } };
}

function toldOf({ version, state, destroyed_at_ms, erase_after_ms }: KeyVersion, nowMs: number): ToldVersion {
  const isGone = state === 'destroyed' && (erase_after_ms ?? 0) <= nowMs;
  return { version, phase: isGone ? 'erased' : state, destroyed_at_ms };
}

/** What happened to a version meanwhile, in its order. */
function stepsOf(was: ToldVersion | undefined, is: ToldVersion): KeyEventType[] {
  const isTakenBack = was?.phase === 'destroyed' && was.destroyed_at_ms !== is.destroyed_at_ms;
  const from = isTakenBack ? 'retired' : was?.phase;
  const reached = PHASES.slice(placeOf(from) + 1, placeOf(is.phase) + 1).map((phase) => REACHED[phase]);
  return isTakenBack ? ['key.undestroyed', ...reached] : reached;
}

/** A replica whose clock is behind does not unsay what another has told. */
function isBehind(was: ToldVersion | undefined, is: ToldVersion): was is ToldVersion {
  const isTakenBack = was?.phase === 'destroyed' && was.destroyed_at_ms !== is.destroyed_at_ms;
  return was !== undefined && !isTakenBack && placeOf(is.phase) < placeOf(was.phase);
}

function placeOf(phase: Phase | undefined): number {
  return phase === undefined ? -1 : PHASES.indexOf(phase);
}

function versionEvent(
  type: KeyEventType,
  { name, versions }: Seen,
  is: KeyVersion,
  was: ToldVersion | undefined,
  nowMs: number,
): CloudEvent {
  const { version, kid, created_at_ms, active_from_ms, destroyed_at_ms, erase_after_ms } = is;
  const later = versions().filter((one) => one.version > version);
  const happened: Partial<Record<KeyEventType, number | null>> = {
    'key.rotated': created_at_ms,
    'key.activated': active_from_ms,
    'key.retired': Math.min(nowMs, ...later.map((one) => one.active_from_ms)),
    'key.destroyed': destroyed_at_ms,
    // When, only the keyring's own record says: before it was given up anew.
    'key.undestroyed': destroyed_at_ms,
    'key.erased': erase_after_ms,
  };
  // A version may be destroyed and taken back more than once.
  const ends = { 'key.destroyed': destroyed_at_ms, 'key.undestroyed': was?.destroyed_at_ms };
  const end = type === 'key.destroyed' || type === 'key.undestroyed' ? `.${ends[type]}` : '';
  return buildOwnEvent({
    ...{ type, source: KEYS_SOURCE, subject: `/keys/${name}`, incarnation: incarnationOf(versions()) },
    id: `${name}.${version}.${created_at_ms}.${type}${end}`,
    time: timeOf(happened[type] ?? nowMs),
    data: {
      ...{ key: name, version: BigInt(version), kid, active_from: timeOf(active_from_ms) },
      erase_after: erase_after_ms === null ? null : timeOf(erase_after_ms),
    },
  });
}

function minVersionEvent({ name, versions }: Seen, told: ToldKey, minVersion: number): CloudEvent {
  const incarnation = incarnationOf(versions());
  return buildOwnEvent({
    type: minVersion > told.min_version ? 'key.barred' : 'key.unbarred',
    ...{ source: KEYS_SOURCE, subject: `/keys/${name}`, incarnation },
    id: `${name}.${incarnation}.min-version.${told.number}.${minVersion}`,
    data: { key: name, min_version: BigInt(minVersion), before: BigInt(told.min_version) },
  });
}

/** A keyring made anew begins with the same numbers. */
function incarnationOf([first]: readonly KeyVersion[]): string {
  return String(first?.created_at_ms ?? 0);
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
