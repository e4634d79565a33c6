import { readFile } from 'node:fs/promises';
import path from 'node:path';

/** Folders that exist on one person's machine only: homes, workplaces, temporary folders. */
const machinePath =
  /(?<![\w.~-])(?:\/(?:home|Users)\/[\w.-]+|\/(?:root|work|workspace|tmp|private\/var)\/[\w.-]+|[A-Z]:\\Users\\)/g;

/** Places where a file names such a folder; binary files are left out. */
export async function checkMachinePaths(root: string, files: readonly string[]): Promise<string[]> {
  const faults: string[] = [];
  for (const file of files) {
    const text = await readFile(path.join(root, file), 'utf8');
    if (text.includes('\0')) continue;
    for (const [index, line] of text.split('\n').entries()) {
      for (const [found] of line.matchAll(machinePath)) faults.push(`${file}:${index + 1}: ${found}`);
    }
  }
  return faults;
}
