import { readFile } from 'node:fs/promises';
import path from 'node:path';

const sourceLimit = 300;
const testLimit = 600;

/** An administrator without pip copies this one file to the master: its length is the price. */
const copiedWhole = 'infra/salt/colonnade_salt/pillar/colonnade.py';

/** Files too long to be read in one go. What a program writes is not for reading. */
export async function checkLengths(root: string, files: readonly string[]): Promise<string[]> {
  const faults: string[] = [];
  for (const file of files.filter(isSource)) {
    const text = await readFile(path.join(root, file), 'utf8');
    const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
    const limit = isTest(file) ? testLimit : sourceLimit;
    if (lines > limit) faults.push(`${file}: ${lines} lines, at most ${limit}`);
  }
  return faults;
}

function isSource(file: string): boolean {
  return file !== copiedWhole && /\.(ts|mts|mjs|js|py|sh|lua)$/.test(file) && !/\.generated\./.test(file);
}

function isTest(file: string): boolean {
  return /\.test\.ts$/.test(file) || /(^|\/)test_[^/]*\.py$/.test(file);
}
