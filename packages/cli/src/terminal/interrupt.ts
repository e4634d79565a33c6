import { EXIT } from '../exit-codes.ts';

/** Ctrl-C: not an error, and nothing more is said. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** What does not end by itself after Ctrl-C is left this long, milliseconds. */
const GRACE_MS = 2000;

/** Ctrl-C and SIGTERM abort the signal; a second one, or work that goes on, ends the process at once. */
export function watchInterrupts(): AbortSignal {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(EXIT.interrupted);
    controller.abort(new Interrupted());
    setTimeout(() => process.exit(EXIT.interrupted), GRACE_MS).unref();
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  return controller.signal;
}
