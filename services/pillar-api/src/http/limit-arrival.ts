import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** From the head of a request to the end of its body, milliseconds. */
const BODY_MS = 30_000;
/** Of a body that is read as it arrives, however long it is: without a byte. */
const SILENCE_MS = 60_000;

/** Whoever sends a body slowly, or never, must not keep a connection for ever. */
export function limitArrival(app: FastifyInstance, breakOff: (socket: Socket) => void): void {
  const timers = new WeakMap<FastifyRequest, NodeJS.Timeout>();
  app.addHook('onRequest', async (request) => {
    if (request.raw.complete) return;
    if (request.routeOptions.config.accepts === undefined) {
      timers.set(request, setTimeout(() => giveUp(request, breakOff), BODY_MS).unref());
      return;
    }
    request.raw.setTimeout(SILENCE_MS, () => giveUp(request, breakOff));
    // What the handler then needs is its own time.
    request.raw.once('end', () => request.raw.setTimeout(0));
  });
  app.addHook('preValidation', async (request) => clearTimeout(timers.get(request)));
}

function giveUp({ raw }: FastifyRequest, breakOff: (socket: Socket) => void): void {
  if (raw.complete) return;
  breakOff(raw.socket);
  raw.destroy();
}
