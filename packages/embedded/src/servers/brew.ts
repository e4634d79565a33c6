import { mkdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';
import type { InstallWay } from './find-server.ts';
import { findOnPath, runCommand } from './tools.ts';

/** Homebrew installs for the whole machine; the cache keeps a link to what it installed. */
export function brewWay(program: string, env: NodeJS.ProcessEnv, formula = program): InstallWay {
  return {
    label: 'Homebrew',
    folder: `${program}-brew`,
    install: async (dir) => {
      const [brew] = findOnPath('brew', env);
      if (!brew) throw new ColonnadeError('unavailable', 'no brew on the PATH');
      await runCommand(brew, ['install', '--quiet', formula], { env });
      const prefix = (await runCommand(brew, ['--prefix', formula], { env })).trim();
      await mkdir(path.join(dir, 'bin'));
      await symlink(path.join(prefix, 'bin', program), path.join(dir, 'bin', program));
    },
  };
}
