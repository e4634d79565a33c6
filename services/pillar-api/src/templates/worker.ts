import { parentPort, workerData } from 'node:worker_threads';
import { toColonnadeError } from '@colonnade/contracts';
import { canonicalText, parseValue, type Value } from '@colonnade/value';
import type { PatternNote } from './pattern-watch.ts';
import type { SchemaAnswer, SchemaJob, SchemaReply } from './schema-thread.ts';
import { openSchema } from './validator.ts';
import { putDefaults } from './with-defaults.ts';

/** The thread in which schemas and patterns of users are run; `schema-thread.ts` ends it when one takes too long. */

parentPort?.on('message', (job: SchemaJob) => {
  parentPort?.postMessage(reply(job));
});

function reply(job: SchemaJob): SchemaReply {
  try {
    return { ok: true, answer: run(job) };
  } catch (thrown) {
    const { code, message, field } = toColonnadeError(thrown);
    return { ok: false, code, message, field };
  }
}

function run(job: SchemaJob): SchemaAnswer {
  const validator = openSchema(read(job.schema), workerData as PatternNote);
  if (job.kind === 'check') return { faults: [] };
  if (job.kind === 'faults') return { faults: validator.faultsOf(read(job.instance)) };
  const saved = new Map(job.saved.map(([name, text]) => [name, read(text)]));
  const { schema, ...rest } = putDefaults(validator, saved);
  return { ...rest, schema: canonicalText(schema) };
}

/** What was stored is not held to the limits of today; a schema with copies in it may be deeper than what was sent. */
function read(text: string): Value {
  return parseValue(text, { maxDepth: 512 });
}
