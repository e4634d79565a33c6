import { Worker } from 'node:worker_threads';
import { ColonnadeError } from '@colonnade/contracts';
import { unpackError } from './errors.ts';
import type { Job, JobKind, Jobs, Reply, Request, WriterOptions } from './protocol.ts';

/** One worker thread that holds the connection which writes. */
export type WriterThread = {
  ask<K extends JobKind>(kind: K, ask: Jobs[K]['ask']): Promise<Jobs[K]['answer']>;
  /** Lets what was asked finish, then ends the thread. */
  close(): Promise<void>;
  readonly hasEnded: boolean;
};

type Waiting = { resolve: (answer: never) => void; reject: (error: unknown) => void };

/** Jobs that wait for the writer at most; more are refused as `overloaded`, so that memory stays bounded. */
const MAX_WAITING = 4096;

/** Starts a thread; resolves when the file is open and migrated. @throws ColonnadeError what opening it says */
export async function startThread(options: WriterOptions): Promise<WriterThread> {
  const worker = new Worker(new URL('./writer-worker.ts', import.meta.url), { workerData: options });
  const waiting = new Map<number, Waiting>();
  const started = Promise.withResolvers<void>();
  const exited = Promise.withResolvers<void>();
  let ended: ColonnadeError | undefined;
  let nextId = 0;

  const end = (cause: unknown) => {
    ended ??= new ColonnadeError('unavailable', 'the writer of the estate store has ended', { cause });
    started.reject(ended);
    for (const { reject } of waiting.values()) reject(ended);
    waiting.clear();
  };
  worker.on('message', (reply: Reply) => {
    if (reply.type === 'ready') started.resolve();
    else if (reply.type === 'failed') started.reject(unpackError(reply.error));
    else settle(waiting, reply);
  });
  worker.on('error', end);
  worker.on('exit', (code) => {
    end(new Error(`exit code ${code}`));
    exited.resolve();
  });

  try {
    await started.promise;
  } catch (thrown) {
    await exited.promise;
    throw thrown;
  }
  const send = (request: Request) => worker.postMessage(request);
  return {
    async ask(kind, ask) {
      if (ended !== undefined) throw ended;
      if (waiting.size >= MAX_WAITING) {
        throw new ColonnadeError('overloaded', 'too many writes wait for the estate store');
      }
      const { promise, resolve, reject } = Promise.withResolvers<never>();
      const id = nextId++;
      waiting.set(id, { resolve, reject });
      send({ id, job: { kind, ask } as Job });
      return promise;
    },
    async close() {
      send('close');
      await exited.promise;
    },
    get hasEnded() {
      return ended !== undefined;
    },
  };
}

function settle(waiting: Map<number, Waiting>, reply: Extract<Reply, { type: 'answer' | 'error' }>): void {
  const asked = waiting.get(reply.id);
  waiting.delete(reply.id);
  if (reply.type === 'answer') asked?.resolve(reply.answer as never);
  else asked?.reject(unpackError(reply.error));
}
