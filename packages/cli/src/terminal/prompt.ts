import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { usageError } from '../exit-codes.ts';
import { Interrupted } from './interrupt.ts';

/** True when a person can be asked: both ends of the question are a terminal. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** Asks on standard error, so that standard output stays the command's own. @throws Interrupted */
export async function ask(question: string): Promise<string> {
  using reader = openReader(process.stderr);
  return await reader.ask(question);
}

/** Asks for what nobody should see: nothing that is typed is shown. @throws Interrupted */
export async function askHidden(question: string): Promise<string> {
  using reader = openReader(undefined);
  return await reader.ask(question);
}

/** As askHidden, twice. @throws ColonnadeError `misconfigured` when the two differ */
export async function askHiddenTwice(what: string): Promise<string> {
  // One reader for both: between two of them the terminal would show what is typed.
  using reader = openReader(undefined);
  const first = await reader.ask(`${what}: `);
  if ((await reader.ask(`${what}, again: `)) !== first) throw usageError('the two are not the same');
  return first;
}

/** @param shown where what is typed is shown; undefined: nowhere */
function openReader(shown: NodeJS.WritableStream | undefined) {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  // From here on the terminal shows nothing by itself, so the question comes after this.
  const reader = createInterface({
    ...{ input: process.stdin, output: shown ?? nowhere, terminal: true, historySize: 0 },
  });
  return {
    async ask(question: string): Promise<string> {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      reader.once('SIGINT', () => reject(new Interrupted()));
      reader.once('close', () => reject(usageError('nothing was entered')));
      if (shown === undefined) process.stderr.write(question);
      reader.question(shown === undefined ? '' : question, resolve);
      const answer = await promise;
      if (shown === undefined) process.stderr.write('\n');
      return answer;
    },
    [Symbol.dispose]: () => reader.close(),
  };
}
