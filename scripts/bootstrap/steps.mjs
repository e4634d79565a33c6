// What a person sees while things are prepared: a line when a step begins, one when it ends, and why it failed.
import process from 'node:process';

/** A step that failed, with what a person needs to go on. */
export class StepError extends Error {
  /**
   * @param {string} what
   * @param {{ where?: string, detail?: string, fix?: string }} [more]
   */
  constructor(what, more = {}) {
    super(what);
    this.more = more;
  }

  /** @returns {string} what failed, where, the tool's own last words, what to do */
  report() {
    const { where, detail, fix } = this.more;
    return [
      `colonnade: ${this.message}`,
      where && `  where: ${where}`,
      detail?.trim().replace(/^/gm, '  | '),
      fix && `  to do: ${fix}`,
    ]
      .filter(Boolean)
      .join('\n');
  }
}

/** @param {string} text */
export function report(text) {
  process.stderr.write(`colonnade: ${text}\n`);
}

/**
 * Runs one step and tells how long it took; a slow one says every ten seconds that it is alive.
 * @template T
 * @param {string} text
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function step(text, work) {
  const start = Date.now();
  const seconds = () => ((Date.now() - start) / 1000).toFixed(1);
  report(`${text} ...`);
  const alive = setInterval(() => report(`${text} ... ${seconds()} s`), 10_000);
  try {
    const result = await work();
    report(`${text}: done in ${seconds()} s`);
    return result;
  } finally {
    clearInterval(alive);
  }
}
