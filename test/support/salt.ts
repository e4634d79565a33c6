import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { type Child, startChild } from '@colonnade/embedded/servers';
import { ensureVenv, readRequirements } from './python.ts';
import { writeConfig } from './salt-config.ts';
import { tempDir } from './temp.ts';
import { waitFor } from './wait-for.ts';

const run = promisify(execFile);
const infra = path.join(import.meta.dirname, '..', '..', 'infra', 'salt');
const requirements = path.join(import.meta.dirname, '..', 'salt');

export type SaltVersion = '3006' | '3008';

export type SaltOptions = {
  version: SaltVersion;
  /** The module copied into extension_modules, or the package installed with pip. */
  install: 'one-file' | 'package';
  /** Files only their owner may read, by name. */
  secrets: Readonly<Record<string, string>>;
  /** The ext_pillar entry's options, given where the secrets lie. */
  colonnade: (secretFile: (name: string) => string) => Readonly<Record<string, unknown>>;
  minion: string;
  /** One more minion of the same master. */
  otherMinion?: string;
  /** Options of the engine; absent: there is none. */
  engine?: Readonly<Record<string, unknown>>;
  /** SLS files by path, such as `app/init.sls`. */
  states: Readonly<Record<string, string>>;
  pillars?: Readonly<Record<string, string>>;
};

export type SaltResult = {
  code: number;
  /** What it printed as JSON, and undefined for what is none. */
  value: unknown;
  /** Both streams. */
  text: string;
};

/** A salt-master and a salt-minion of one version, on free ports of the loopback, in a folder of their own. */
export type Salt = AsyncDisposable & {
  dir: string;
  minion: string;
  /** `salt <minion> …`: the master has the running minion do it. */
  salt(...args: readonly string[]): Promise<SaltResult>;
  /** The same for another minion. */
  saltTo(minion: string, ...args: readonly string[]): Promise<SaltResult>;
  /** `salt-call …` beside the running minion. */
  saltCall(...args: readonly string[]): Promise<SaltResult>;
  saltRun(...args: readonly string[]): Promise<SaltResult>;
  /** Restarts the master, with or without the Python package redis; returns when it listens. */
  restartMaster(options: { library: boolean }): Promise<void>;
  /** The external pillar's file, as Salt finds it. */
  moduleFile: string;
  stop(): Promise<void>;
};

type Places = { bin: string; config: string; lib: string; packages: string; ports: [number, number] };

/**
 * Starts both and returns when the master has accepted the minion and the minion takes orders.
 * Needs root: Salt's minion is meant to run as it.
 */
export async function startSalt(options: SaltOptions): Promise<Salt> {
  await using started = new AsyncDisposableStack();
  const dir = started.use(await tempDir(`salt${options.version}`)).path;
  const python = await ensureVenv(
    `salt-${options.version}`,
    await readRequirements(path.join(requirements, `requirements-${options.version}.txt`)),
  );
  const places: Places = {
    bin: path.dirname(python),
    config: path.join(dir, 'etc'),
    lib: path.join(dir, 'lib'),
    packages: path.join(dir, 'packages'),
    ports: [await freePort(), await freePort()],
  };
  await copyLibrary(places.lib);
  const moduleFile = await installModule(options, python, dir, places.packages);
  await writeConfig({ options, dir, ...places });
  let master = await startMaster(dir, places, true);
  started.defer(() => endGroup(master));
  for (const id of [options.minion, options.otherMinion]) {
    if (id === undefined) continue;
    const minion = await startMinion(dir, places, id === options.minion ? 'minion' : 'other');
    started.defer(() => endGroup(minion));
  }
  const command = async (program: string, args: readonly string[], library = true) =>
    await call(
      path.join(places.bin, program),
      ['-c', places.config, '--out=json', ...args],
      env(places, library),
    );
  let hasLibrary = true;
  const salt: Omit<Salt, 'stop' | typeof Symbol.asyncDispose> = {
    dir,
    minion: options.minion,
    moduleFile,
    salt: (...args) => salt.saltTo(options.minion, ...args),
    saltTo: (minion, ...args) => command('salt', ['--static', '-t', '60', minion, ...args]),
    saltCall: (...args) => command('salt-call', ['--retcode-passthrough', ...args]),
    saltRun: (...args) => command('salt-run', args, hasLibrary),
    async restartMaster({ library }) {
      await endGroup(master);
      hasLibrary = library;
      master = await startMaster(dir, places, library);
    },
  };
  for (const id of [options.minion, options.otherMinion]) {
    if (id === undefined) continue;
    const answers = async () => (await salt.saltTo(id, 'test.ping')).code === 0;
    await waitFor(`the minion ${id} to answer`, answers, { limitMs: 150_000 });
  }
  const owned = started.move();
  const stop = () => owned.disposeAsync();
  return { ...salt, stop, [Symbol.asyncDispose]: stop };
}

/** Salt's own environment has no redis package, so that it can be taken away. */
async function copyLibrary(lib: string): Promise<void> {
  const python = await ensureVenv('redis', ['redis==8.1.0']);
  // Before Python 3.11.3 the library needs a package of its own.
  const program = `
import importlib.util, redis
print(redis.__path__[0])
spec = importlib.util.find_spec('async_timeout')
if spec: print(spec.submodule_search_locations[0])`;
  const { stdout } = await run(python, ['-c', program]);
  for (const folder of stdout.trim().split('\n')) {
    await cp(folder, path.join(lib, path.basename(folder)), { recursive: true });
  }
}

async function installModule(
  { install }: SaltOptions,
  python: string,
  dir: string,
  packages: string,
): Promise<string> {
  if (install === 'one-file') {
    const modules = path.join(dir, 'extmods');
    for (const kind of ['engines', 'pillar', 'runners']) {
      await cp(
        path.join(infra, 'colonnade_salt', kind, 'colonnade.py'),
        path.join(modules, kind, 'colonnade.py'),
      );
    }
    return path.join(modules, 'pillar', 'colonnade.py');
  }
  // Built from a copy: the build leaves files in its source.
  const source = path.join(dir, 'source');
  await cp(infra, source, { recursive: true });
  await run(python, ['-m', 'pip', 'install', '--quiet', '--no-deps', '--target', packages, source]);
  return path.join(packages, 'colonnade_salt', 'pillar', 'colonnade.py');
}

function env(places: Places, library: boolean): NodeJS.ProcessEnv {
  const search = [places.packages, ...(library ? [places.lib] : [])];
  return { ...process.env, PYTHONPATH: search.join(path.delimiter), PYTHONWARNINGS: 'ignore' };
}

async function startMaster(dir: string, places: Places, library: boolean): Promise<Child> {
  const child = await startChild({
    command: path.join(places.bin, 'salt-master'),
    args: ['-c', places.config, '-l', 'warning'],
    logFile: path.join(dir, 'master.out'),
    env: env(places, library),
  });
  try {
    const over = () => child.exit !== undefined;
    await waitFor('salt-master', async () => over() || (await listens(places.ports[1])), { limitMs: 60_000 });
    if (!over()) return child;
    throw new Error('salt-master ended');
  } catch (error) {
    await endGroup(child);
    const said = await readFile(path.join(dir, 'master.out'), 'utf8');
    throw new Error(`${(error as Error).message}: ${said.slice(-2_000)}`, { cause: error });
  }
}

async function startMinion(dir: string, places: Places, role: 'minion' | 'other'): Promise<Child> {
  return await startChild({
    command: path.join(places.bin, 'salt-minion'),
    args: ['-c', role === 'minion' ? places.config : path.join(places.config, role), '-l', 'warning'],
    logFile: path.join(dir, `${role}.out`),
    env: env(places, false),
  });
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Salt's daemons are families of processes that take long to part; nothing of theirs is needed afterwards. */
async function endGroup(child: Child): Promise<void> {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Nobody was left.
  }
  await child.exited;
}

async function call(
  program: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<SaltResult> {
  const { promise, resolve } = Promise.withResolvers<SaltResult>();
  execFile(
    program,
    args,
    { env: environment, timeout: 120_000, maxBuffer: 2 ** 26 },
    (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
      resolve({ code, value: readJson(stdout), text: `${stdout}${stderr}` });
    },
  );
  return await promise;
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.on('error', reject);
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
  });
  return await promise;
}

/** What Salt's daemons have logged, all of it. */
export async function readSaltLogs({ dir }: Pick<Salt, 'dir'>): Promise<string> {
  const files = ['master', 'minion'].flatMap((role) => [
    path.join(dir, role, 'log'),
    path.join(dir, `${role}.out`),
  ]);
  return (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('\n');
}

/** Takes away what is at a path and gives back how to bring it back. */
export async function breakFile(file: string, broken: string): Promise<() => Promise<void>> {
  const whole = await readFile(file);
  const forget = () => rm(path.join(path.dirname(file), '__pycache__'), { recursive: true, force: true });
  await writeFile(file, broken);
  await forget();
  return async () => {
    await writeFile(file, whole);
    await forget();
  };
}
