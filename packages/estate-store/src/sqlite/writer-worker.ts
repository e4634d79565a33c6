import { parentPort, workerData } from 'node:worker_threads';
import { ColonnadeError } from '@colonnade/contracts';
import { packError } from './errors.ts';
import type { Reply, Request, WriterOptions } from './protocol.ts';
import { openWriter, type QueuedJob, type Writer } from './writer.ts';

/** The writer's thread: collects what has arrived, commits it in groups, answers after the commit. */

const port = parentPort;
if (port === null) throw new ColonnadeError('internal', 'the writer runs in a worker thread only');
const send = (reply: Reply) => port.postMessage(reply);

let queue: QueuedJob[] = [];
let closing = false;
let scheduled = false;
let scrubTimer: NodeJS.Timeout | undefined;

/** Between two tries to remove the remains of a purge, milliseconds. */
const SCRUB_AGAIN_MS = 5000;

function start(): Writer | undefined {
  try {
    const writer = openWriter(workerData as WriterOptions);
    send({ type: 'ready' });
    return writer;
  } catch (thrown) {
    send({ type: 'failed', error: packError(thrown) });
    return undefined;
  }
}

const writer = start();
if (writer === undefined) port.close();
else scrub(writer);

port.on('message', (request: Request) => {
  if (request === 'close') closing = true;
  else queue.push(request);
  schedule();
});

/** Runs after the messages that are already here, so that they share a commit. */
function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  setImmediate(() => {
    scheduled = false;
    runQueue();
  });
}

function runQueue(): void {
  if (writer === undefined) return;
  if (queue.length > 0) {
    const { replies, rest } = writer.commitGroup(queue);
    queue = rest;
    // Before the answers: who hears that a value is purged finds nothing of it.
    scrub(writer);
    for (const reply of replies) send(reply);
  }
  if (queue.length > 0) schedule();
  else if (closing) {
    clearTimeout(scrubTimer);
    writer.close();
    port?.close();
  }
}

function scrub(open: Writer, again = false): void {
  if (again) scrubTimer = undefined;
  if (!open.scrub(again)) scrubTimer ??= setTimeout(scrub, SCRUB_AGAIN_MS, open, true);
}
