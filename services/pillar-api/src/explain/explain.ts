import type { Bus } from '@colonnade/bus';
import {
  type Call,
  ColonnadeError,
  type Explained,
  LIMITS,
  mergerExplain,
  SECRET_MASK,
  type zScopeRestore,
} from '@colonnade/contracts';
import type { EstateStore, VersionMark } from '@colonnade/estate-store';
import { canonicalBytes, type Value } from '@colonnade/value';
import type { z } from 'zod';
import { openPast } from './past.ts';
import type { FindPillar, SupposedChange } from './supposed-changes.ts';

type Asked = z.output<typeof mergerExplain.request>;
type Key = Explained['keys'][number];
type Deps = {
  store: Pick<EstateStore, 'findPillar' | 'readScopeHistory' | 'getVersion'>;
  bus: Pick<Bus, 'request'>;
  call: Call;
};
/** Resolves what is supposed, with the pillars of the moment that is explained. */
type Suppose = (find: FindPillar) => Promise<readonly SupposedChange[]>;

/** Versions that are read at once. */
const READ_AT_ONCE = 20;

/**
 * Asks a merger for an explanation, with changes that are not saved. Their values stay here: the merger decides by
 * target and name, and of a secret nothing is shown, not even to who sent it.
 * @throws ColonnadeError the merger's, those of `suppose`, `unprocessable` (too large)
 */
export async function explainNow(deps: Deps, asked: Asked, suppose: Suppose): Promise<Explained> {
  const { store } = deps;
  const changes = await suppose((...place) => store.findPillar(...place));
  const answer = await askMerger(deps, { ...asked, ...withoutValues(changes) });
  return { ...answer, keys: answer.keys.map((key) => showKey(key, key.value, changes, asked)) };
}

/**
 * The same with the pillars of a clock or a time. Memberships, collections and tasks have no history: those of now
 * decide which scopes are read, and the merger is told what stood in them.
 * @throws ColonnadeError as explainNow and openPast
 */
export async function explainPast(
  deps: Deps,
  asked: Asked,
  suppose: Suppose,
  at: z.output<typeof zScopeRestore>['at'],
): Promise<Explained> {
  const { scopes } = await askMerger(deps, { ...asked, omit_values: true });
  const past = await openPast(deps.store, at, scopes);
  const changes = await suppose(async (tgtType, tgtId, name, pillarenv) => {
    const marks = await past.scope(pillarenv);
    return marks.find((m) => m.tgtType === tgtType && m.tgtId === tgtId && m.name === name);
  });
  const held = new Map<string, readonly VersionMark[]>();
  for (const scope of scopes) held.set(scope, await past.scope(scope));
  const answer = await askMerger(deps, {
    ...asked,
    ...withoutValues(changes),
    past: [...held].map(([pillarenv, marks]) => ({ pillarenv, pillars: marks.map(withoutVersion) })),
  });
  const marks = new Map([...held.values()].flat().map((mark) => [mark.pid, mark]));
  const values = asked.omit_values === true ? new Map() : await readValues(deps.store, answer.keys, marks);
  const version = (origin: Key['winner']): Key['winner'] => {
    const mark = origin.change === undefined ? marks.get(origin.pid ?? '') : undefined;
    return mark === undefined ? origin : { ...origin, version: mark.tick };
  };
  const keys = answer.keys.map((key): Key => {
    const winner = version(key.winner);
    const isPurged = winner.version !== undefined && marks.get(winner.pid ?? '')?.purged === true;
    const shown = showKey(key, values.get(winner.pid ?? '') ?? null, changes, asked);
    return { ...shown, ...(isPurged ? { purged: true } : {}), winner, overrode: key.overrode.map(version) };
  });
  return { ...answer, at: past.tick, keys };
}

async function askMerger({ bus, call }: Deps, asked: Asked) {
  return await bus.request(mergerExplain, asked, call).catch((thrown) => {
    throw asTooLargeToTell(thrown, asked);
  });
}

function withoutValues(changes: readonly SupposedChange[]): Pick<Asked, 'changes'> {
  return changes.length === 0 ? {} : { changes: changes.map(({ value: _, ...change }) => change) };
}

function withoutVersion({ pid, tgtType, tgtId, name, isSecret }: VersionMark) {
  return { pid, tgt_type: tgtType, tgt_id: tgtId, name, is_secret: isSecret };
}

/** By pid, of what won and is no secret. */
async function readValues(
  store: Deps['store'],
  keys: readonly Key[],
  marks: ReadonlyMap<string, VersionMark>,
): Promise<Map<string, Value>> {
  const wanted = keys.flatMap(({ winner }) => {
    const mark = winner.change === undefined ? marks.get(winner.pid ?? '') : undefined;
    return mark === undefined || mark.isSecret || mark.purged ? [] : [mark];
  });
  const values = new Map<string, Value>();
  let room: number = LIMITS.natsPayloadBytes;
  for (let from = 0; from < wanted.length; from += READ_AT_ONCE) {
    const part = wanted.slice(from, from + READ_AT_ONCE);
    const found = await Promise.all(part.map(({ pid, tick }) => store.getVersion(pid, tick)));
    for (const version of found) {
      if (version === undefined || version.purged) {
        throw new ColonnadeError('conflict', 'the history was purged or trimmed meanwhile: try again');
      }
      room -= canonicalBytes(version.value).length;
      values.set(version.pid, version.value);
    }
    if (room < 0) throw asTooLargeToTell(new ColonnadeError('too_large', 'the values of the past'), {});
  }
  return values;
}

/** The merger masks secrets; a merger that forgets to must not make this API show them. */
function showKey(key: Key, stored: Value, changes: readonly SupposedChange[], asked: Asked): Key {
  const { change } = key.winner;
  const supposed = change === undefined ? undefined : changes[change];
  if (asked.omit_values === true) return { ...key, value: null };
  if (key.is_secret || supposed?.is_secret === true) return { ...key, value: SECRET_MASK };
  return { ...key, value: supposed === undefined ? stored : (supposed.value ?? null) };
}

/** A merge may be larger than a message on the bus. It is not the request that is too large, so not 413. */
function asTooLargeToTell(
  thrown: unknown,
  { past, omit_values }: Pick<Asked, 'past' | 'omit_values'>,
): unknown {
  if (!(thrown instanceof ColonnadeError) || thrown.code !== 'too_large') return thrown;
  const limit = `${LIMITS.natsPayloadBytes / 1024 / 1024} MiB`;
  const some = 'for some of its environments with pillarenv';
  const pillar = `the explanation of this minion's pillar is over ${limit}`;
  const [field, why] =
    past !== undefined
      ? ['at', `${pillar}: ask ${some}`]
      : omit_values === true
        ? ['pillarenv', `${pillar} even without values (${thrown.message}): ask ${some}, or list the pillars`]
        : ['values', `${pillar}: ask with values=omit, or ${some}, and read large values by their pid`];
  return new ColonnadeError('unprocessable', `${field}: ${why}`, { field, cause: thrown });
}
