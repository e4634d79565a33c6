import { Worker } from 'node:worker_threads';
import { ColonnadeError } from '@colonnade/contracts';
import { unpackError } from './errors.ts';
import type { Job, JobKind, Jobs, Reply, Request, WriterOptions } from './protocol.ts';

/** The caller's side of the writer's thread. */
export type WriterClient = {
  ask<K extends JobKind>(kind: K, ask: Jobs[K]['ask']): Promise<Jobs[K]['answer']>;
  /** Lets what was asked finish, then ends the thread. */
  close(): Promise<void>;
};

type Waiting = { resolve: (answer: never) => void; reject: (error: unknown) => void };

/** Jobs that wait for the writer at most; more are refused as `overloaded`, so that memory stays bounded. */
const MAX_WAITING = 4096;

/** Starts the thread; resolves when the file is open and migrated. @throws ColonnadeError what opening says */
export async function startWriter(options: WriterOptions): Promise<WriterClient> {
  const worker = new Worker(new URL('./writer-worker.ts', import.meta.url), { workerData: options });
  const waiting = new Map<number, Waiting>();
  let nextId = 0;
  let gone: ColonnadeError | undefined;
  const started = Promise.withResolvers<void>();
  const exited = Promise.withResolvers<void>();

  worker.on('message', (reply: Reply) => {
    if (reply.type === 'ready') return started.resolve();
    if (reply.type === 'failed') return started.reject(unpackError(reply.error));
    const asked = waiting.get(reply.id);
    waiting.delete(reply.id);
    if (reply.type === 'answer') asked?.resolve(reply.answer as never);
    else asked?.reject(unpackError(reply.error));
  });
  const end = (cause: unknown) => {
    gone ??= new ColonnadeError('unavailable', 'the writer of the estate store has ended', { cause });
    started.reject(gone);
    for (const { reject } of waiting.values()) reject(gone);
    waiting.clear();
  };
  worker.on('error', end);
  worker.on('exit', (code) => {
    end(new Error(`exit code ${code}`));
    exited.resolve();
  });
  const send = (request: Request) => worker.postMessage(request);

  try {
    await started.promise;
  } catch (thrown) {
    await exited.promise;
    throw thrown;
  }
  return {
    async ask(kind, ask) {
      if (gone !== undefined) throw gone;
      if (waiting.size >= MAX_WAITING)
        throw new ColonnadeError('overloaded', 'too many writes wait for the store');
      const { promise, resolve, reject } = Promise.withResolvers<never>();
      const id = nextId++;
      waiting.set(id, { resolve, reject });
      send({ id, job: { kind, ask } as Job });
      return promise;
    },
    async close() {
      gone ??= new ColonnadeError('unavailable', 'the estate store is closed');
      send('close');
      await exited.promise;
    },
  };
}
