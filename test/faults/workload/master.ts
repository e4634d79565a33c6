import { setTimeout as delay } from 'node:timers/promises';
import { type BridgeReply, ColonnadeError } from '@colonnade/contracts';
import type { AskBridge } from '@colonnade/embedded';
import type { Value } from '@colonnade/value';
import type { Random } from '../../support/random.ts';
import { findTraces } from '../../support/search-traces.ts';
import { ABSENT, callTime, count, type History, returnTime, type ValueId, violate } from '../history.ts';
import { MEMBERSHIP, MINIONS, REGISTERS, ROAM, ROAMER, readValue } from './estate.ts';

export type MasterOptions = {
  client: number;
  master: string;
  random: Random;
  ask: AskBridge;
  history: History;
  canary: string;
  stop: AbortSignal;
};

const PAUSE_MS = 120;
const TTL_MS = 2000;
/** A connection that lets nothing through must not hold the master for ever. */
const LIMIT_MS = 5000;
/** Errors that say "not now". Any other would blame the master for a fault of ours. */
const NOT_NOW: ReadonlySet<string> = new Set([
  ...['unavailable', 'kms_unavailable', 'overloaded', 'expired', 'redis_unavailable'],
  // After two mergers died over it, which a fault can look like.
  'internal',
]);

/** A Salt master that asks for one pillar after the other. */
export async function runMaster(options: MasterOptions): Promise<void> {
  const { random, stop, master } = options;
  const own = MINIONS.filter((name) => name.startsWith(`${master}/`));
  while (!stop.aborted) {
    await askOnce(options, random.pick(own));
    await delay(1 + random.below(PAUSE_MS), undefined, { signal: stop }).catch(() => {});
  }
}

/** @returns whether the pillar came */
export async function askOnce(options: MasterOptions, minion: string): Promise<boolean> {
  const { history, canary, ask } = options;
  const minionId = minion.slice(minion.indexOf('/') + 1);
  const call = callTime();
  const reply = await withinLimit(ask({ minionId, pillarenv: 'auto', ttlMs: TTL_MS })).catch((thrown) => {
    const code = thrown instanceof ColonnadeError ? thrown.code : 'internal';
    count(history.refusals, `bridge client: ${code}`);
    if (code === 'internal') violate(history, 'wrong reply', String(thrown));
    return undefined;
  });
  const end = returnTime();
  if (reply === undefined) return false;
  if (!reply.ok) {
    refused(history, reply.error, canary);
    return false;
  }
  const { client } = options;
  const seen = readPillar(history, minion, reply, canary);
  history.merges.push({ client, minion, call, return: end, clock: Number(reply.clock), seen });
  return true;
}

function refused(
  history: History,
  { code, message }: { code: string; message: string },
  canary: string,
): void {
  count(history.refusals, `bridge: ${code}`);
  if (!NOT_NOW.has(code)) violate(history, 'wrong refusal', `a merge was answered ${code}: ${message}`);
  for (const trace of findTraces('a bridge error', Buffer.from(message), [canary]))
    violate(history, 'leak', trace);
}

/** What each register was in this pillar; a name that is none of the minion's is a violation. */
function readPillar(
  history: History,
  minion: string,
  reply: Extract<BridgeReply, { ok: true }>,
  canary: string,
): ReadonlyMap<string, ValueId> {
  const pillar = reply.pillar as Readonly<Record<string, Value>>;
  const seen = new Map<string, ValueId>();
  const expected = REGISTERS.filter(({ seenBy }) => seenBy.includes(minion));
  for (const { key, name, isSecret } of expected) {
    const value = pillar[name];
    const id = value === undefined ? ABSENT : readValue(value, isSecret ? canary : undefined);
    if (id === undefined) violate(history, 'torn value', `${key} in a pillar of ${minion}`);
    else seen.set(key, id);
  }
  const names = new Set(expected.map(({ name }) => name));
  if (minion === ROAMER) {
    names.add('from');
    const from = pillar.from;
    if (typeof from !== 'string' || !(ROAM as readonly string[]).includes(from)) {
      violate(history, 'partial pillar', `a pillar of ${minion} comes from no collection`);
    } else seen.set(MEMBERSHIP, from);
  }
  for (const name of Object.keys(pillar)) {
    if (!names.has(name)) violate(history, 'foreign pillar', `${minion} was given ${name}`);
  }
  return seen;
}

async function withinLimit<T>(promise: Promise<T>): Promise<T> {
  const over = new AbortController();
  const late = delay(LIMIT_MS, undefined, { signal: over.signal }).then(() => {
    throw new ColonnadeError('unavailable', 'the bridge kept silent');
  });
  late.catch(() => {});
  promise.catch(() => {});
  return await Promise.race([promise, late]).finally(() => over.abort());
}
