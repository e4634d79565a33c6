import { Worker } from 'node:worker_threads';
import { ColonnadeError, type ErrorCode } from '@colonnade/contracts';
import { createPatternNote, type PatternNote, readPatternNote } from './pattern-watch.ts';
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

export type SchemaThread = {
  /**
   * One question, one answer; one question at a time.
   * @throws SchemaRefusal its own answer: it is ready for more
   * @throws SchemaTooMuch it is lost, and ended: the schema takes more time or memory than it may
   * @throws ColonnadeError `unavailable`: it does not come up
   */
  ask(job: SchemaJob): Promise<SchemaAnswer>;
  end(): Promise<unknown>;
};

export class SchemaRefusal extends ColonnadeError {}
export class SchemaTooMuch extends ColonnadeError {}

/** A thread that has to be started first loads the validator. */
const START_LIMIT_MS = 10_000;
const MEMORY_MB = 128;

/** @param limitMs of one question */
export function startSchemaThread(limitMs: number): SchemaThread {
  const note = createPatternNote();
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    workerData: note,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  });
  worker.unref();
  worker.on('error', () => undefined);
  // The first check compiles the meta-schema, which takes longer than most schemas.
  const warm: SchemaJob = { kind: 'check', schema: '{"type":"object"}' };
  const online = askOnce(worker, warm, START_LIMIT_MS, note).catch((thrown: unknown) => {
    throw new ColonnadeError('unavailable', 'schemas cannot be checked now', { cause: thrown });
  });
  online.catch(() => undefined);
  return {
    async ask(job) {
      await online;
      return await askOnce(worker, job, limitMs, note);
    },
    end: () => worker.terminate(),
  };
}

function askOnce(worker: Worker, job: SchemaJob, limitMs: number, note: PatternNote): Promise<SchemaAnswer> {
  const done = Promise.withResolvers<SchemaAnswer>();
  const fail = (why: string) =>
    done.reject(new SchemaTooMuch('unprocessable', `schema: ${why}`, { field: 'schema' }));
  const onMessage = (reply: SchemaReply) => {
    if (reply.ok) return done.resolve(reply.answer);
    const { code, message, field } = reply;
    done.reject(new SchemaRefusal(code, message, field === undefined ? {} : { field }));
  };
  const onEnd = () => fail('it takes more memory than a template may');
  const onLate = () => {
    const pattern = readPatternNote(note);
    const what = pattern === undefined ? 'it' : `the pattern ${JSON.stringify(pattern)}`;
    fail(`${what} takes longer to check than a template may, ${limitMs} ms`);
  };
  // An answer that is there already is read before: it may be this thread that was late.
  const timer = setTimeout(() => setImmediate(onLate), limitMs);
  worker.once('message', onMessage).once('exit', onEnd);
  worker.postMessage(job);
  return done.promise.finally(() => {
    clearTimeout(timer);
    worker.off('message', onMessage).off('exit', onEnd);
  });
}
