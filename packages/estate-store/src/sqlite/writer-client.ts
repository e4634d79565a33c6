import { ColonnadeError } from '@colonnade/contracts';
import type { JobKind, Jobs, WriterOptions } from './protocol.ts';
import { startThread, type WriterThread } from './writer-thread.ts';

/** The caller's side of the writer. */
export type WriterClient = {
  /** Resolves after the commit; `unavailable` when the writer ended before it could answer. */
  ask<K extends JobKind>(kind: K, ask: Jobs[K]['ask']): Promise<Jobs[K]['answer']>;
  /** Lets what was asked finish, then ends the thread. */
  close(): Promise<void>;
};

/**
 * Starts the writer; resolves when the file is open and migrated. Should its thread ever end by itself, the next
 * job starts another one.
 * @throws ColonnadeError what opening the file says
 */
export async function startWriter(options: WriterOptions): Promise<WriterClient> {
  let thread: WriterThread = await startThread(options);
  let restarting: Promise<WriterThread> | undefined;
  let isClosed = false;

  const restart = async () => {
    try {
      thread = await startThread({ ...options, newIncarnation: false });
      return thread;
    } finally {
      restarting = undefined;
    }
  };
  return {
    async ask(kind, ask) {
      if (isClosed) throw new ColonnadeError('unavailable', 'the estate store is closed');
      if (!thread.hasEnded) return thread.ask(kind, ask);
      restarting ??= restart();
      return (await restarting).ask(kind, ask);
    },
    async close() {
      isClosed = true;
      await restarting?.catch(() => undefined);
      await thread.close();
    },
  };
}
