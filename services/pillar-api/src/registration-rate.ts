import { ColonnadeError } from '@colonnade/contracts';

/** Masters remembered; the estate has as many as have a valid token. */
const MAX_MASTERS = 10_000;

/**
 * How fast a master may have new minions registered: whoever has its token could name any number of them.
 * @param perMinute also how many may come at once
 * @param now milliseconds, of a clock that never goes back
 */
export function createRegistrationRate(perMinute: number, now: () => number = () => performance.now()) {
  const levels = new Map<string, { left: number; atMs: number }>();
  return {
    /** @throws ColonnadeError `rate_limited` */
    take(master: string): void {
      const atMs = now();
      const before = levels.get(master) ?? { left: perMinute, atMs };
      const left = Math.min(perMinute, before.left + ((atMs - before.atMs) / 60_000) * perMinute);
      levels.delete(master);
      levels.set(master, { left: left < 1 ? left : left - 1, atMs });
      if (levels.size > MAX_MASTERS) levels.delete(levels.keys().next().value as string);
      if (left >= 1) return;
      throw new ColonnadeError('rate_limited', `the master has more than ${perMinute} new minions a minute`);
    },
  };
}
