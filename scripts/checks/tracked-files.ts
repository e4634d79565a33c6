import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

/** The files that are, or with the next commit could be, in git, relative to the checkout. */
export async function trackedFiles(root: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard'],
    { cwd: root, maxBuffer: 64 * 1024 * 1024 },
  );
  const files = stdout.split('\0').filter((file) => file !== '');
  return files.filter((file) => existsSync(path.join(root, file)));
}
