import { mkdir, rm, stat, utimes } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

/** The holder of a lock shows every few seconds that it lives; one silent for longer is gone. */
const heartbeatMs = 5_000;
const silenceMs = 60_000;

/**
 * Does what several processes may want done, one after the other. It only spares them the work: should two hold the
 * lock, each must build a folder of its own.
 * @param lock a folder that is there as long as somebody works
 */
export async function withLock(lock: string, work: () => Promise<void>): Promise<void> {
  for (;;) {
    const mine = await mkdir(lock).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') return false;
        throw error;
      },
    );
    if (mine) break;
    const info = await stat(lock).catch(() => undefined);
    if (info && Date.now() - info.mtimeMs < silenceMs) {
      await delay(250);
      continue;
    }
    await rm(lock, { recursive: true, force: true });
  }
  const beat = setInterval(() => void utimes(lock, new Date(), new Date()).catch(() => {}), heartbeatMs);
  try {
    await work();
  } finally {
    clearInterval(beat);
    await rm(lock, { recursive: true, force: true });
  }
}
