import { parseDuration } from './duration.ts';

/** Milliseconds after which a hook is complained about, and after which it is killed. */
export type Timeouts = { warnMs: number; killMs: number };

/** What the head of a hook asks for; a directive that cannot be read counts as not there, and is told of. */
export type StatedTimeouts = Partial<Timeouts> & { faults: readonly string[] };

/** Seed 002: directives must stand in the first 1000 characters. */
const HEAD_CHARACTERS = 1000;
/** UTF-8 takes four bytes at most for a character; one more tells whether the file goes on. */
export const HEAD_BYTES = HEAD_CHARACTERS * 4 + 1;

/**
 * Reads `HOOK_WARN_TIMEOUT` and `HOOK_KILL_TIMEOUT` from the first bytes of a hook, at most HEAD_BYTES of them. Only the end
 * of a line counts, so any characters of a comment may stand before a directive; lines may end in CR LF. The first line
 * that can be read wins. A line that goes beyond the limit is not within it, and does not count (seed 002).
 */
export function readStatedTimeouts(head: Uint8Array): StatedTimeouts {
  const text = new TextDecoder().decode(head);
  const characters = [...text].slice(0, HEAD_CHARACTERS).join('');
  const lines = characters.split(/\r\n|\n|\r/u);
  if (characters.length < text.length && !/^[\r\n]/u.test(text.slice(characters.length))) lines.pop();
  const faults: string[] = [];
  const warnMs = findDirective('HOOK_WARN_TIMEOUT', lines, faults);
  const killMs = findDirective('HOOK_KILL_TIMEOUT', lines, faults);
  return {
    ...(warnMs === undefined ? {} : { warnMs }),
    ...(killMs === undefined ? {} : { killMs }),
    faults,
  };
}

function findDirective(name: string, lines: readonly string[], faults: string[]): number | undefined {
  const directive = new RegExp(`${name}\\s*=\\s*(.*)$`, 'u');
  for (const line of lines) {
    const stated = directive.exec(line)?.[1];
    if (stated === undefined) continue;
    const ms = parseDuration(stated);
    if (ms !== undefined) return ms;
    faults.push(`${name} is not a length and a unit`);
  }
  return undefined;
}
