// Hands over to the real program: same terminal, signals passed on, its exit code kept.
import { spawn } from 'node:child_process';
import os from 'node:os';
import process from 'node:process';
import { whenParentEnds } from './parent.mjs';

/** @type {NodeJS.Signals[]} */
const passedOn = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

const preload = new URL('./end-with-parent.mjs', import.meta.url).href;

/**
 * @param {string} node
 * @param {string} program
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<number>} the exit code, 128 + n for a program that ended by signal n
 */
export async function runProgram(node, program, args, env) {
  return await new Promise((resolve, reject) => {
    // node:sqlite and type stripping call themselves experimental in every process.
    const flags = ['--disable-warning=ExperimentalWarning', `--import=${preload}`];
    const child = spawn(node, [...flags, program, ...args], { stdio: 'inherit', env });
    for (const signal of passedOn) {
      process.on(signal, () => {
        // A terminal's Ctrl-C reaches the program by itself: passed on, it would count twice.
        if (signal === 'SIGINT' && process.stdin.isTTY) return;
        child.kill(signal);
      });
    }
    // Only npm is watched: a shell may end and leave us running on purpose.
    if (env.npm_lifecycle_event) whenParentEnds(() => child.kill('SIGTERM'));
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      resolve(code ?? 128 + (os.constants.signals[/** @type {NodeJS.Signals} */ (signal)] ?? 0));
    });
  });
}
