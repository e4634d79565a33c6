// The workspace's packages, installed with pnpm only when they are not in step with the lockfile.
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { installOnce } from './cache.mjs';
import { withLock } from './lock.mjs';
import { npmInstall, runInstaller } from './npm.mjs';
import { step } from './steps.mjs';

const pnpmVersion = '12.21.0';

/**
 * @param {string} root the checkout
 * @param {string} cache the tools cache
 * @param {string} node the Node.js to run pnpm with
 * @param {NodeJS.ProcessEnv} env the installers' environment
 */
export async function ensureDependencies(root, cache, node, env) {
  const stamp = path.join(root, 'node_modules', '.colonnade-installed');
  const wanted = await fingerprint(root);
  const isCurrent = async () => (await readFile(stamp, 'utf8').catch(() => '')) === wanted;
  if (await isCurrent()) return;
  await withLock(path.join(root, '.colonnade', 'install.lock'), async () => {
    if (await isCurrent()) return;
    const pnpm = await ensurePnpm(cache, env);
    await step('packages of the workspace', () =>
      runInstaller([node, pnpm, 'install', '--frozen-lockfile', '--reporter=append-only'], {
        cwd: root,
        env: { ...env, PATH: `${path.dirname(node)}${path.delimiter}${env.PATH ?? ''}`, CI: 'true' },
      }),
    );
    await writeFile(stamp, wanted);
  });
}

/**
 * pnpm in the tools cache rather than through npx: two npx at once spoil each other's folder.
 * @param {string} cache
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<string>} the script to run with Node.js
 */
async function ensurePnpm(cache, env) {
  const dir = path.join(cache, `pnpm-${pnpmVersion}-${process.platform}-${process.arch}`);
  const script = path.join(dir, 'node_modules', 'pnpm', 'bin', 'pnpm.mjs');
  if (existsSync(script)) return script;
  await withLock(`${dir}.lock`, async () => {
    if (existsSync(script)) return;
    await step(`pnpm ${pnpmVersion} from npm`, () =>
      installOnce(dir, (partial) => npmInstall(partial, [`pnpm@${pnpmVersion}`], env)),
    );
  });
  return script;
}

/**
 * @param {string} root
 * @returns {Promise<string>} changes when an install could end differently
 */
async function fingerprint(root) {
  const hash = createHash('sha256').update(`pnpm ${pnpmVersion} ${process.platform} ${process.arch}\n`);
  for (const file of await manifests(root)) {
    hash.update(`${file}\n`).update(await readFile(path.join(root, file)));
  }
  return hash.digest('hex');
}

/** @param {string} root */
async function manifests(root) {
  const found = ['pnpm-lock.yaml', 'pnpm-workspace.yaml', '.npmrc', 'package.json', 'test/package.json'];
  for (const group of ['packages', 'services']) {
    const names = await readdir(path.join(root, group)).catch(() => []);
    found.push(...names.sort().map((name) => `${group}/${name}/package.json`));
  }
  return found.filter((file) => existsSync(path.join(root, file)));
}
