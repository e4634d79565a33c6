import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { toolsCache } from '@colonnade/embedded/servers';

const run = promisify(execFile);
const LIMIT_MS = 10 * 60_000;

/**
 * A Python environment with these packages, made once and kept in the tools cache.
 * @param requirements as pip reads them, with exact versions
 * @returns the path of its `python`
 */
export async function ensureVenv(name: string, requirements: string[]): Promise<string> {
  const hash = createHash('sha256').update(requirements.join('\n')).digest('hex').slice(0, 12);
  const dir = path.join(toolsCache(process.env), `venv-${name}-${hash}`);
  const python = path.join(dir, 'bin', 'python');
  if (existsSync(python)) return python;
  const partial = `${dir}.${process.pid}.partial`;
  try {
    await mkdir(path.dirname(dir), { recursive: true });
    await run('python3', ['-m', 'venv', partial], { timeout: LIMIT_MS });
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...requirements];
    await run(path.join(partial, 'bin', 'python'), pip, { timeout: LIMIT_MS });
    // Complete or not there: of two processes that build it at once, the slower one drops its copy.
    await rename(partial, dir).catch((error: unknown) => {
      if (!existsSync(python)) throw error;
    });
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  return python;
}
