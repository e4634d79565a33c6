import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type RunningServer, startChild, superviseServer, waitReady } from '@colonnade/embedded/servers';
import { MongoClient } from 'mongodb';
import { freePort } from './free-port.ts';
import { ensureVenv } from './python.ts';
import { tempDir } from './temp.ts';

/** A server that takes the place of MongoDB where none is installed; one node, which its own log says. */
const SUBSTITUTE = 'secantusdb==0.7.0b3';

export type TestMongo = AsyncDisposable & {
  /** Without user and password, which stand beside it. */
  readonly url: string;
  readonly user?: string;
  readonly password?: string;
  /** The name of a database nobody else uses; it goes with the server, or when this is disposed of. */
  freshDatabase: () => string;
  /** The process; undefined where `MONGODB_URL` names a server that is not ours. */
  readonly server: RunningServer | undefined;
  /** Not MongoDB itself, which differs in places. */
  readonly isSubstitute: boolean;
};

export type TestMongoOptions = {
  /** PEM files; the server then speaks TLS only. */
  tls?: { certFile: string; keyFile: string; caFile: string };
  /** Whether users are asked for their passwords; looked at anew at each start. */
  auth?: () => boolean;
};

type Program = { kind: 'mongod' | 'substitute'; command: string };
type Launch = TestMongoOptions & { program: Program; dir: string };

/** What to hand to a test's `skip`: false when there is a server, else why not. */
export async function skipWithoutMongo(): Promise<false | string> {
  if (process.env.MONGODB_URL) return false;
  const found = await findProgram().catch((error: Error) => error);
  return found instanceof Error ? `no MongoDB: ${found.message}` : false;
}

/** What to hand to the `skip` of a test that sets the server up itself, or kills it. */
export async function skipWithoutOwnMongo(): Promise<false | string> {
  return process.env.MONGODB_URL ? 'MONGODB_URL names a server that is not ours' : await skipWithoutMongo();
}

/**
 * A MongoDB for tests: the one of `MONGODB_URL`, else a `mongod` of the PATH, else a substitute from PyPI. What is
 * started listens on a free port, keeps its data in a temporary folder, can be killed and restarted, and ends with
 * this process.
 */
export async function mongoForTests(options: TestMongoOptions = {}): Promise<TestMongo> {
  const shared = process.env.MONGODB_URL;
  if (shared) return useShared(shared);
  const dir = await tempDir('mongo');
  try {
    const launch = { ...options, program: await findProgram(), dir: dir.path };
    const { server, url } = await start(launch);
    return {
      url,
      server,
      isSubstitute: launch.program.kind === 'substitute',
      freshDatabase: databaseName,
      [Symbol.asyncDispose]: async () => {
        await server[Symbol.asyncDispose]();
        await dir[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await dir[Symbol.asyncDispose]();
    throw error;
  }
}

function databaseName(): string {
  return `colonnade_${randomBytes(6).toString('hex')}`;
}

function useShared(text: string): TestMongo {
  const [, scheme, , user, password, rest] =
    /^(mongodb(?:\+srv)?:\/\/)(([^:@/]*)(?::([^@/]*))?@)?(.*)$/u.exec(text) ?? [];
  const account = {
    ...(user === undefined ? {} : { user: decodeURIComponent(user) }),
    ...(password === undefined ? {} : { password: decodeURIComponent(password) }),
  };
  const names: string[] = [];
  return {
    url: `${scheme}${rest}`,
    ...account,
    server: undefined,
    isSubstitute: false,
    freshDatabase: () => {
      const name = databaseName();
      names.push(name);
      return name;
    },
    [Symbol.asyncDispose]: async () => {
      const client = new MongoClient(text);
      for (const name of names) await client.db(name).dropDatabase();
      await client.close();
    },
  };
}

async function findProgram(): Promise<Program> {
  const mongod = (process.env.PATH ?? '').split(path.delimiter).map((dir) => path.join(dir, 'mongod'));
  for (const command of mongod) {
    if (await readFile(command).then(Boolean, () => false)) return { kind: 'mongod', command };
  }
  return { kind: 'substitute', command: await ensureVenv('mongo', [SUBSTITUTE]) };
}

async function start(launch: Launch): Promise<{ server: RunningServer; url: string }> {
  const logFile = path.join(launch.dir, 'mongo.log');
  const port = await freePort();
  const query = launch.tls ? '?tls=true&directConnection=true' : '?directConnection=true';
  const url = `mongodb://127.0.0.1:${port}/${query}`;
  const run = () => startProcess(launch, port, logFile);
  const server = superviseServer(await run(), logFile, run);
  try {
    if (launch.program.kind === 'mongod') await initiate(url, launch);
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
  return { server, url };
}

async function startProcess(launch: Launch, port: number, logFile: string) {
  const from = (await readFile(logFile, 'utf8').catch(() => '')).length;
  const args = launch.program.kind === 'mongod' ? await mongodArgs(launch) : substituteArgs(launch);
  const child = await startChild({
    command: launch.program.command,
    args: [...args, '--port', String(port)],
    logFile,
  });
  // Its own word: on the port another process may be listening.
  const isReady = async () => {
    const text = (await readFile(logFile, 'utf8')).slice(from);
    return /secantus listening on|"Waiting for connections"/iu.test(text) ? true : undefined;
  };
  await waitReady('MongoDB', child, logFile, isReady, 60_000);
  return child;
}

function substituteArgs({ dir, tls, auth }: Launch): string[] {
  // Without the flag it loses acknowledged writes when it is killed.
  const args = ['-m', 'secantus', '--sync-on-commit', '--storage-path', path.join(dir, 'data')];
  if (auth?.()) args.push('--auth');
  if (tls) {
    const { certFile, keyFile, caFile } = tls;
    args.push('--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-file', caFile);
  }
  return args;
}

async function mongodArgs({ dir, tls, auth }: Launch): Promise<string[]> {
  const args = ['--dbpath', dir, '--bind_ip', '127.0.0.1', '--replSet', 'colonnade'];
  if (auth?.()) {
    const keyFile = path.join(dir, 'member.key');
    await writeFile(keyFile, randomBytes(48).toString('base64'), { mode: 0o600 });
    args.push('--auth', '--keyFile', keyFile);
  }
  if (tls) {
    const both = path.join(dir, 'server.pem');
    const parts = [await readFile(tls.certFile, 'utf8'), await readFile(tls.keyFile, 'utf8')];
    await writeFile(both, parts.join('\n'), { mode: 0o600 });
    args.push('--tlsMode', 'requireTLS', '--tlsCertificateKeyFile', both, '--tlsCAFile', tls.caFile);
    args.push('--tlsAllowConnectionsWithoutCertificates');
  }
  return args;
}

/** Makes a mongod the only member of its replica set, and waits until it is the primary. */
async function initiate(url: string, { tls }: Launch): Promise<void> {
  const host = new URL(url).host;
  const client = new MongoClient(url, tls ? { tlsCAFile: tls.caFile } : {});
  try {
    const admin = client.db('admin');
    await admin.command({ replSetInitiate: { _id: 'colonnade', members: [{ _id: 0, host }] } });
    for (let look = 0; look < 300; look++) {
      if ((await admin.command({ hello: 1 })).isWritablePrimary) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error('mongod did not become the primary of its replica set');
  } finally {
    await client.close();
  }
}
