import { setTimeout as sleep } from 'node:timers/promises';

/** A token bucket: `qps` requests a second, `burst` of them at once after a rest (client-go's flowcontrol). */
export type Throttle = { accept(signal: AbortSignal): Promise<void> };

export function createThrottle(qps: number, burst: number, now = () => performance.now()): Throttle {
  let tokens = burst;
  let at = now();
  return {
    async accept(signal) {
      const time = now();
      tokens = Math.min(burst, tokens + ((time - at) / 1000) * qps) - 1;
      at = time;
      if (tokens >= 0) return;
      await sleep((-tokens / qps) * 1000, undefined, { signal }).catch(() => {});
    },
  };
}
