// npm, run quietly and without install scripts: the only installer that is certain to be there.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { isWritable } from './cache.mjs';
import { StepError } from './steps.mjs';

const limitMs = 15 * 60_000;

/**
 * The environment of installers. Where the home cannot be written they get one in the cache, and keep the
 * user's npm configuration (registry, proxy, certificates).
 * @param {string} cache
 * @param {NodeJS.ProcessEnv} env
 * @returns {NodeJS.ProcessEnv}
 */
export function installEnv(cache, env) {
  const home = os.homedir();
  const result = { ...env };
  // Set by the npm that started us for its own project; the npm we start has another.
  for (const name of ['npm_config_local_prefix', 'npm_config_prefix', 'npm_config_global_prefix']) {
    delete result[name];
  }
  if (path.isAbsolute(home) && existsSync(home) && isWritable(path.join(home, '.npm'))) return result;
  for (const name of [
    'npm_config_cache',
    'XDG_DATA_HOME',
    'XDG_STATE_HOME',
    'XDG_CONFIG_HOME',
    'PNPM_HOME',
  ]) {
    delete result[name];
  }
  const userConfig = path.join(home, '.npmrc');
  if (!result.npm_config_userconfig && existsSync(userConfig)) result.npm_config_userconfig = userConfig;
  result.HOME = path.join(cache, 'home');
  result.XDG_CACHE_HOME = path.join(cache, 'home', '.cache');
  return result;
}

/**
 * Installs packages into a folder that holds nothing else.
 * @param {string} dir
 * @param {string[]} packages each with its exact version
 * @param {NodeJS.ProcessEnv} env
 */
export async function npmInstall(dir, packages, env) {
  await writeFile(path.join(dir, 'package.json'), '{"private":true}\n');
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error'];
  const args = ['install', ...flags, ...packages];
  const cli = env.npm_execpath;
  // npm's own script, when npm started us, runs on the Node.js that we run on.
  const command = cli?.endsWith('npm-cli.js') && existsSync(cli) ? [process.execPath, cli] : ['npm'];
  await runInstaller([...command, ...args], { cwd: dir, env });
}

/**
 * @param {string[]} commandLine
 * @param {{ cwd: string, env: NodeJS.ProcessEnv }} options
 * @returns {Promise<string>} what it printed
 */
export async function runInstaller([command = '', ...args], { cwd, env }) {
  return await new Promise((resolve, reject) => {
    let output = '';
    const shown = [path.basename(command), ...args].join(' ');
    /** @param {string} reason */
    const fail = (reason) =>
      reject(
        new StepError(`"${shown}" ${reason}`, {
          where: cwd,
          detail: output.split('\n').slice(-25).join('\n'),
          fix: 'If it is that the package registry was not reached: check network, proxy, certificates. Then run it again.',
        }),
      );
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: limitMs });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    }
    child.on('error', (error) => fail(`could not be run: ${error.message}`));
    child.on('close', (code, signal) => {
      if (code === 0) resolve(output);
      else fail(signal ? `was ended by ${signal}` : `ended with exit code ${code}`);
    });
  });
}
