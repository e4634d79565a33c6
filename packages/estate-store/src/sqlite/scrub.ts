import type { Db } from './connection.ts';

/** Removes from the file what a purge took out of the tables. */
export type Scrubber = {
  /**
   * Does what is due; what was tried in vain only `again`, so that writes are not held up by every try.
   * @returns false when something is left to do
   */
  run(again: boolean): boolean;
};

/** How long the end of readers is waited for at a time: writes wait meanwhile. Milliseconds. */
const WAIT_MS = 1000;

/**
 * A value that was overwritten or deleted can still stand in the file: in the WAL, and in gaps of pages. `secure_delete`
 * clears what is freed, but leaves the copies that SQLite makes when it moves cells between pages; only VACUUM, which
 * writes every page anew, leaves none. That a scrub is due stands in the file, so that a crash does not forget it.
 */
export function createScrubber(db: Db, busyTimeoutMs: number): Scrubber {
  let rewrittenFor = 0;
  let triedFor = 0;
  return {
    run(again) {
      try {
        const due = db.get<{ purge_tick: number }>('SELECT purge_tick FROM meta')?.purge_tick ?? 0;
        if (due === 0) return true;
        if (due === triedFor && !again) return false;
        triedFor = due;
        db.exec(`PRAGMA busy_timeout = ${Math.min(WAIT_MS, busyTimeoutMs)}`);
        if (rewrittenFor !== due) db.exec('VACUUM');
        rewrittenFor = due;
        // A reader on an older snapshot keeps the WAL; what it holds is then emptied by the next try.
        if (db.get<{ busy: number }>('PRAGMA wal_checkpoint(TRUNCATE)')?.busy !== 0) return false;
        // Another purge may have come meanwhile, from another process.
        db.run('UPDATE meta SET purge_tick = 0 WHERE purge_tick = ?', due);
        return true;
      } catch {
        // Locked, or no room for the copy: it is tried again, and stays due.
        return false;
      } finally {
        db.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
      }
    },
  };
}
