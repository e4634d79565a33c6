import { Worker } from 'node:worker_threads';
import { ColonnadeError, type ErrorCode } from '@colonnade/contracts';
import { canonicalText, parseValue, type Value } from '@colonnade/value';
import type { Defaults } from './fitting.ts';
import type { Fault } from './validator.ts';
import type { LeftOut } from './with-defaults.ts';

/** What the thread of `worker.ts` is asked, and answers. Values go as canonical text. */
export type SchemaJob =
  | { kind: 'check'; schema: string }
  | { kind: 'faults'; schema: string; instance: string }
  | { kind: 'put'; schema: string; saved: [string, string][] };
export type SchemaAnswer =
  | { faults: readonly Fault[] }
  | { schema: string; applied: string[]; leftOut: LeftOut[] };
export type SchemaReply =
  | { ok: true; answer: SchemaAnswer }
  | { ok: false; code: ErrorCode; message: string; field: string | undefined };

/**
 * JSON Schemas of users, run in a thread with a limit of time and memory: a pattern or a schema may take for ever, and
 * must not stop the service.
 */
export type Schemas = AsyncDisposable & {
  /** @throws ColonnadeError `unprocessable` (no schema of a known draft, not bounded, too slow) | `overloaded` */
  check(schema: Value): Promise<void>;
  /** What is wrong with an instance; empty when it fits. @throws ColonnadeError as check */
  faultsOf(schema: Value, instance: Value): Promise<readonly Fault[]>;
  /** See `putDefaults`. @throws ColonnadeError as check */
  putDefaults(
    schema: Value,
    saved: Defaults,
  ): Promise<{ schema: Value; applied: string[]; leftOut: LeftOut[] }>;
};

const TIME_LIMIT_MS = 2000;
/** A thread that has to be started first loads the validator. */
const START_LIMIT_MS = 10_000;
const MEMORY_MB = 128;
const MAX_WAITING = 64;

type Waiting = { job: SchemaJob; done: PromiseWithResolvers<SchemaAnswer> };

/** @param timeLimitMs of one job */
export function createSchemas({ timeLimitMs = TIME_LIMIT_MS }: { timeLimitMs?: number } = {}): Schemas {
  const queue: Waiting[] = [];
  let thread: { worker: Worker; online: Promise<unknown> } | undefined;
  let isBusy = false;

  const next = async (): Promise<void> => {
    const waiting = isBusy ? undefined : queue.shift();
    if (waiting === undefined) return;
    isBusy = true;
    thread ??= startThread();
    const { worker } = thread;
    try {
      await thread.online;
      waiting.done.resolve(await ask(worker, waiting.job, timeLimitMs));
    } catch (thrown) {
      waiting.done.reject(thrown);
      // Only a refusal leaves the thread as it was.
      if (!(thrown instanceof SchemaRefusal)) {
        thread = undefined;
        await worker.terminate();
      }
    }
    isBusy = false;
    void next();
  };
  const run = (job: SchemaJob): Promise<SchemaAnswer> => {
    if (queue.length >= MAX_WAITING)
      throw new ColonnadeError('overloaded', 'too many schemas wait to be checked');
    const done = Promise.withResolvers<SchemaAnswer>();
    queue.push({ job, done });
    void next();
    return done.promise;
  };
  return {
    async check(schema) {
      await run({ kind: 'check', schema: canonicalText(schema) });
    },
    async faultsOf(schema, instance) {
      const job = { schema: canonicalText(schema), instance: canonicalText(instance) };
      const answer = await run({ kind: 'faults', ...job });
      return 'faults' in answer ? answer.faults : [];
    },
    async putDefaults(schema, saved) {
      const texts = [...saved].map(([name, value]): [string, string] => [name, canonicalText(value)]);
      const answer = await run({ kind: 'put', schema: canonicalText(schema), saved: texts });
      if (!('schema' in answer))
        throw new ColonnadeError('internal', 'the schema thread answered with no schema');
      return { ...answer, schema: parseValue(answer.schema, { maxDepth: 512 }) };
    },
    async [Symbol.asyncDispose]() {
      await thread?.worker.terminate();
    },
  };
}

/** The thread's own answer that it refuses; it is ready for more. */
class SchemaRefusal extends ColonnadeError {}

function startThread(): { worker: Worker; online: Promise<unknown> } {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  });
  worker.unref();
  worker.on('error', () => undefined);
  // The first check compiles the meta-schema, which takes longer than most schemas.
  const warm: SchemaJob = { kind: 'check', schema: '{"type":"object"}' };
  const online = ask(worker, warm, START_LIMIT_MS);
  online.catch(() => undefined);
  return { worker, online };
}

/** One question, one answer; the thread ends or is late: `unprocessable`, since it is the schema that did that. */
function ask(worker: Worker, job: SchemaJob, limitMs: number): Promise<SchemaAnswer> {
  const done = Promise.withResolvers<SchemaAnswer>();
  const fail = (why: string) =>
    done.reject(new ColonnadeError('unprocessable', `schema: ${why}`, { field: 'schema' }));
  const onMessage = (reply: SchemaReply) => {
    if (reply.ok) return done.resolve(reply.answer);
    const { code, message, field } = reply;
    done.reject(new SchemaRefusal(code, message, field === undefined ? {} : { field }));
  };
  const onEnd = () => fail('it takes more memory than a template may');
  const timer = setTimeout(() => fail('it takes longer to check than a template may'), limitMs);
  worker.once('message', onMessage).once('exit', onEnd);
  worker.postMessage(job);
  return done.promise.finally(() => {
    clearTimeout(timer);
    worker.off('message', onMessage).off('exit', onEnd);
  });
}
