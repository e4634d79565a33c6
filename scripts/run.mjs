// The first thing a newcomer runs: plain JavaScript for Node.js 18 and later, and no package at all.
// It finds or installs a Node.js that runs TypeScript, installs the workspace, and hands over to the program.
import { existsSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { resolveCache } from './bootstrap/cache.mjs';
import { ensureDependencies } from './bootstrap/dependencies.mjs';
import { ensureNode } from './bootstrap/node.mjs';
import { installEnv } from './bootstrap/npm.mjs';
import { runProgram } from './bootstrap/program.mjs';
import { StepError } from './bootstrap/steps.mjs';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** @type {Record<string, string>} */
const programs = {
  start: 'packages/embedded/src/main.ts',
  test: 'test/run.ts',
  verify: 'scripts/verify.ts',
  bench: 'test/bench/main.ts',
  faults: 'test/faults/main.ts',
};

/**
 * @param {string} command
 * @param {string[]} args
 * @returns {Promise<number>} the exit code
 */
async function run(command, args) {
  const program = programs[command];
  if (program === undefined) {
    throw new StepError(`There is no command "${command}"`, {
      fix: `Use one of: ${Object.keys(programs).join(', ')}.`,
    });
  }
  if (process.platform === 'win32') {
    throw new StepError('Colonnade does not run on Windows itself', { fix: 'Use WSL 2, Linux or macOS.' });
  }
  if (!existsSync(path.join(root, program))) {
    throw new StepError(`"${command}" is not part of this version`, { where: program });
  }
  const cache = resolveCache(root, process.env);
  const env = installEnv(cache, process.env);
  const node = await ensureNode(cache, env);
  await ensureDependencies(root, cache, node, env);
  return await runProgram(node, path.join(root, program), args, {
    ...process.env,
    COLONNADE_CACHE: cache,
    PATH: `${path.dirname(node)}${path.delimiter}${process.env.PATH ?? ''}`,
  });
}

const [command = '', ...args] = process.argv.slice(2);
run(command, args).then(
  (code) => {
    process.exitCode = code;
  },
  (error) => {
    console.error(error instanceof StepError ? error.report() : error);
    // Whoever counts tests must see that the run failed, whatever it failed on.
    if (command === 'test') console.log('0 passed, 1 failed');
    process.exitCode = 1;
  },
);
