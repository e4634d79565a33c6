#!/usr/bin/env node
// The operator's command from a checkout (`npx . pillar list`): plain JavaScript for Node.js 18 and later.
// It finds or installs a Node.js 24, bundles the command when its sources are newer than the bundle, and runs it.
import { existsSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { resolveCache } from './bootstrap/cache.mjs';
import { ensureDependencies } from './bootstrap/dependencies.mjs';
import { withLock } from './bootstrap/lock.mjs';
import { ensureNode } from './bootstrap/node.mjs';
import { installEnv, runInstaller } from './bootstrap/npm.mjs';
import { runProgram } from './bootstrap/program.mjs';
import { StepError } from './bootstrap/steps.mjs';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const bundle = path.join(root, '.colonnade', 'cli', 'colonnade.cjs');

/** @returns {Promise<string>} a Node.js that runs the bundle, which is there and current */
async function prepare() {
  if (process.platform === 'win32') {
    throw new StepError('Colonnade does not run on Windows itself', { fix: 'Use WSL 2, Linux or macOS.' });
  }
  const cache = resolveCache(root, process.env);
  const env = installEnv(cache, process.env);
  const node = await ensureNode(cache, env);
  await ensureDependencies(root, cache, node, env);
  if (await isCurrent()) return node;
  await withLock(`${bundle}.lock`, async () => {
    if (await isCurrent()) return;
    await runInstaller([node, path.join(root, 'scripts', 'bundle-cli.ts'), bundle], { cwd: root, env });
  });
  return node;
}

/** @returns {Promise<boolean>} whether nothing the bundle is made of has changed since */
async function isCurrent() {
  const made = (await stat(bundle).catch(() => undefined))?.mtimeMs;
  if (made === undefined) return false;
  const files = [path.join(root, 'pnpm-lock.yaml'), path.join(root, 'scripts', 'bundle-cli.ts')];
  for (const name of await readdir(path.join(root, 'packages'))) {
    const dir = path.join(root, 'packages', name, 'src');
    if (!existsSync(dir)) continue;
    const inside = await readdir(dir, { recursive: true });
    // Folders too: a file that was removed leaves its trace only there.
    files.push(dir, ...inside.map((one) => path.join(dir, one)));
  }
  const times = await Promise.all(files.map(async (file) => (await stat(file)).mtimeMs));
  return times.every((time) => time < made);
}

prepare().then(
  async (node) => {
    if (node === process.execPath) {
      // Already on the right one: a second process would only cost time.
      process.argv[1] = bundle;
      createRequire(import.meta.url)(bundle);
    } else {
      process.exitCode = await runProgram(node, bundle, process.argv.slice(2), process.env);
    }
  },
  (error) => {
    console.error(error instanceof StepError ? error.report() : error);
    process.exitCode = 1;
  },
);
