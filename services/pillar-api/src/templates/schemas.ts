import { createHash } from 'node:crypto';
import { ColonnadeError } from '@colonnade/contracts';
import { canonicalText, parseValue, type Value } from '@colonnade/value';
import { createFairQueue } from './fair-queue.ts';
import type { Defaults } from './fitting.ts';
import {
  type SchemaAnswer,
  type SchemaJob,
  SchemaRefusal,
  type SchemaThread,
  SchemaTooMuch,
  startSchemaThread,
} from './schema-thread.ts';
import type { Fault } from './validator.ts';
import type { LeftOut } from './with-defaults.ts';

/**
 * JSON Schemas of users, run in a thread with a limit of time and memory: a pattern or a schema may take for ever, and
 * must not stop the service. `caller` is whoever asks, as his rate is counted: callers take turns, so that one who asks
 * much, or for what takes long, costs each other one turn and not a queue.
 */
export type Schemas = AsyncDisposable & {
  /** @throws ColonnadeError `unprocessable` (no schema of a known draft, not bounded, too slow) | `overloaded` | `unavailable` */
  check(caller: string, schema: Value): Promise<void>;
  /** What is wrong with an instance; empty when it fits. @throws ColonnadeError as check */
  faultsOf(caller: string, schema: Value, instance: Value): Promise<readonly Fault[]>;
  /** See `putDefaults`. @throws ColonnadeError as check */
  putDefaults(
    caller: string,
    schema: Value,
    saved: Defaults,
  ): Promise<{ schema: Value; applied: string[]; leftOut: LeftOut[] }>;
};

export type SchemaLimits = {
  /** Of one question. */
  timeLimitMs: number;
  /** Of the time before it. */
  waitLimitMs: number;
};

const LIMITS_MS: SchemaLimits = { timeLimitMs: 1000, waitLimitMs: 5000 };
const MAX_WAITING = 64;
const MAX_WAITING_OF_ONE = 16;
const MAX_REMEMBERED = 256;
/** Long, and not for ever: it may have been a bad hour of the machine. */
const REMEMBERED_MS = 600_000;

type Waiting = { job: SchemaJob; done: PromiseWithResolvers<SchemaAnswer>; timer: NodeJS.Timeout };

export function createSchemas(options: Partial<SchemaLimits> = {}): Schemas {
  const { timeLimitMs, waitLimitMs } = { ...LIMITS_MS, ...options };
  const queue = createFairQueue<Waiting>();
  const tooMuch = createMemory();
  let thread: SchemaThread | undefined;
  let isBusy = false;

  const answer = async (job: SchemaJob): Promise<SchemaAnswer> => {
    tooMuch.refuse(job);
    thread ??= startSchemaThread(timeLimitMs);
    try {
      return await thread.ask(job);
    } catch (thrown) {
      // Only a refusal leaves the thread as it was.
      if (!(thrown instanceof SchemaRefusal)) {
        const { end } = thread;
        thread = undefined;
        await end();
      }
      if (thrown instanceof SchemaTooMuch) tooMuch.note(job, thrown);
      throw thrown;
    }
  };
  const next = async (): Promise<void> => {
    const waiting = isBusy ? undefined : queue.take();
    if (waiting === undefined) return;
    isBusy = true;
    clearTimeout(waiting.timer);
    await answer(waiting.job).then(waiting.done.resolve, waiting.done.reject);
    isBusy = false;
    void next();
  };
  const run = async (caller: string, job: SchemaJob): Promise<SchemaAnswer> => {
    tooMuch.refuse(job);
    if (queue.length >= MAX_WAITING) throw busy('too many schemas wait to be checked');
    if (queue.lengthOf(caller) >= MAX_WAITING_OF_ONE)
      throw busy('too many of your schemas wait to be checked');
    const done = Promise.withResolvers<SchemaAnswer>();
    const timer = setTimeout(() => {
      queue.remove(caller, waiting);
      done.reject(busy(`the schema could not be checked within ${waitLimitMs} ms`));
    }, waitLimitMs);
    const waiting: Waiting = { job, done, timer };
    queue.add(caller, waiting);
    void next();
    return await done.promise;
  };
  return { ...questions(run), [Symbol.asyncDispose]: async () => void (await thread?.end()) };
}

function questions(run: (caller: string, job: SchemaJob) => Promise<SchemaAnswer>) {
  return {
    async check(caller: string, schema: Value) {
      await run(caller, { kind: 'check', schema: canonicalText(schema) });
    },
    async faultsOf(caller: string, schema: Value, instance: Value) {
      const job = { schema: canonicalText(schema), instance: canonicalText(instance) };
      const answer = await run(caller, { kind: 'faults', ...job });
      return 'faults' in answer ? answer.faults : [];
    },
    async putDefaults(caller: string, schema: Value, saved: Defaults) {
      const texts = [...saved].map(([name, value]): [string, string] => [name, canonicalText(value)]);
      const answer = await run(caller, { kind: 'put', schema: canonicalText(schema), saved: texts });
      if (!('schema' in answer))
        throw new ColonnadeError('internal', 'the schema thread answered with no schema');
      return { ...answer, schema: parseValue(answer.schema, { maxDepth: 512 }) };
    },
  };
}

/**
 * What took too much is not run again: the same question has the same answer. Kept by digest, since the values asked
 * about may be secret; of the question and not of the schema, which may do well with anybody else's values.
 */
function createMemory() {
  const known = new Map<string, { refusal: SchemaTooMuch; untilMs: number }>();
  return {
    refuse(job: SchemaJob): void {
      if (known.size === 0) return;
      const key = digestOf(job);
      const found = known.get(key);
      if (found === undefined) return;
      if (found.untilMs > performance.now()) throw found.refusal;
      known.delete(key);
    },
    note(job: SchemaJob, refusal: SchemaTooMuch): void {
      const [oldest] = known.keys();
      if (known.size >= MAX_REMEMBERED && oldest !== undefined) known.delete(oldest);
      known.set(digestOf(job), { refusal, untilMs: performance.now() + REMEMBERED_MS });
    },
  };
}

function digestOf(job: SchemaJob): string {
  return createHash('sha256').update(JSON.stringify(job)).digest('base64');
}

function busy(why: string): ColonnadeError {
  return new ColonnadeError('overloaded', `${why}: try again`);
}
