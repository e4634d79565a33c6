import { readFileSync } from 'node:fs';

/** A process, and when it began in the kernel's ticks: another one of the same number began at another time. */
export type ProcessMark = { pid: number; birth: string };

/** When a process began, undefined when it is gone, a zombie, or the system does not say (only Linux does). */
export function processBirth(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name may hold anything, blanks and parentheses too; what counts stands behind its last one.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
