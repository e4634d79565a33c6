import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { MongoClient } from 'mongodb';
import { mongoForTests } from '../../support/mongo.ts';
import { redisForTests } from '../../support/servers.ts';
import { startOpenBao } from './openbao.ts';

const run = promisify(execFile);
const SECRETS = 5;
/** Salt's last release with this module; it runs in later ones as a module of the master's own. */
const SALT_WITH_MONGO = 'salt==3007.17';

/** One of Salt's external pillars, ready to be asked. */
export type Peer = {
  /** As in a master's `ext_pillar`; several are asked one after the other. */
  entries: readonly object[];
  is: string;
  /** For the master's configuration. */
  config?: object;
};

export type Peers = AsyncDisposable & {
  peers: Readonly<Record<string, Peer>>;
  /** Which could not be set up here, and why. */
  missing: readonly string[];
};

type Pillars = Readonly<Record<string, unknown>>;
type Setup = (owned: AsyncDisposableStack, dir: string, minion: string, pillars: Pillars) => Promise<Peer>;

/**
 * Sets up Salt's external pillars with the same pillars each: in files, behind a program, in Redis, MongoDB and Vault; with
 * GPG five of them are secrets. One that cannot be had here is left out, and said.
 * @param python of Salt's environment
 */
export async function startPeers(
  dir: string,
  minion: string,
  pillars: Pillars,
  python: string,
  report: (text: string) => void,
): Promise<Peers> {
  const owned = new AsyncDisposableStack();
  const setups: Readonly<Record<string, Setup>> = {
    stack: setUpStack,
    cmd_json: setUpCommand,
    redis: setUpRedis,
    mongo: (...args) => setUpMongo(...args, python),
    'stack and gpg': setUpGpg,
    vault: setUpVault,
  };
  const peers: Record<string, Peer> = {};
  const missing: string[] = [];
  for (const [name, setUp] of Object.entries(setups)) {
    try {
      peers[name] = await setUp(owned, dir, minion, pillars);
    } catch (error) {
      missing.push(`${name}: ${(error as Error).message.split('\n')[0]}`);
      report(`without ${missing.at(-1)}`);
    }
  }
  return { peers, missing, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

const setUpStack: Setup = async (_, dir, __, pillars) => ({
  entries: [{ stack: await writeStack(path.join(dir, 'stack'), pillars) }],
  is: 'stack: five files, nothing decrypted',
});

const setUpCommand: Setup = async (_, dir, __, pillars) => {
  const file = path.join(dir, 'pillars.json');
  await writeFile(file, JSON.stringify(pillars));
  return { entries: [{ cmd_json: `cat ${file}` }], is: 'cmd_json: a program, nothing decrypted' };
};

const setUpRedis: Setup = async (owned, _, minion, pillars) => {
  const server = owned.use(await redisForTests());
  const { host, port, adminUser: username, adminPassword: password } = server;
  const redis = new Redis({ host, port, username, password });
  // The module knows no user names, so it comes as the nameless one.
  await redis.call('ACL', 'SETUSER', 'default', 'on', 'nopass', '~*', '&*', '+@all');
  await redis.set(minion, JSON.stringify(pillars));
  redis.disconnect();
  return {
    entries: [{ redis: { function: 'key_json' } }],
    is: 'redis (saltext-redis): one key, nothing decrypted',
    config: { 'redis.host': host, 'redis.port': port },
  };
};

async function setUpMongo(
  owned: AsyncDisposableStack,
  dir: string,
  minion: string,
  pillars: Pillars,
  python: string,
): Promise<Peer> {
  const source = path.join(dir, 'salt-3007');
  const pip = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--no-binary', 'salt'];
  await run(python, [...pip, '-d', source, SALT_WITH_MONGO]);
  const unpack =
    'import glob,sys,tarfile; t=tarfile.open(glob.glob(sys.argv[1]+"/salt-*.tar.gz")[0]);' +
    'm=[n for n in t.getnames() if n.endswith("/salt/pillar/mongo.py")][0]; sys.stdout.buffer.write(t.extractfile(m).read())';
  const { stdout } = await run(python, ['-c', unpack, source], { maxBuffer: 2 ** 20 });
  await mkdir(path.join(dir, 'extmods', 'pillar'), { recursive: true });
  await writeFile(path.join(dir, 'extmods', 'pillar', 'mongo.py'), stdout);
  const mongo = owned.use(await mongoForTests());
  const client = await MongoClient.connect(mongo.url);
  const database = mongo.freshDatabase();
  await client
    .db(database)
    .collection<{ _id: string }>('pillar')
    .insertOne({ _id: minion, ...pillars });
  await client.close();
  const { hostname, port } = new URL(mongo.url);
  return {
    entries: [{ mongo: { collection: 'pillar', id_field: '_id' } }],
    is: `mongo (of Salt 3007): one document${mongo.isSubstitute ? ' in a substitute for MongoDB' : ''}, nothing decrypted`,
    config: { 'mongo.host': hostname, 'mongo.port': Number(port), 'mongo.db': database },
  };
}

const setUpGpg: Setup = async (owned, dir, _, pillars) => {
  const home = path.join(dir, 'gpg');
  await mkdir(home, { mode: 0o700 });
  const gpg = (...args: string[]) => run('gpg', ['--homedir', home, '--batch', '--quiet', ...args]);
  owned.defer(async () => void (await run('gpgconf', ['--homedir', home, '--kill', 'all']).catch(() => {})));
  await gpg('--passphrase', '', '--quick-generate-key', 'bench', 'default', 'default', 'never');
  const file = path.join(dir, 'secret');
  await writeFile(file, 'secret number 1');
  const secret = (
    await gpg('--trust-model', 'always', '--armor', '-r', 'bench', '--output', '-', '--encrypt', file)
  ).stdout;
  const sealed = Object.entries(pillars).map(([name, value], i) => [name, i < SECRETS ? secret : value]);
  return {
    entries: [
      { stack: await writeStack(path.join(dir, 'gpg-stack'), Object.fromEntries(sealed)) },
      { gpg: true },
    ],
    is: 'stack and gpg: five files, five secrets decrypted',
    config: { gpg_keydir: home },
  };
};

const setUpVault: Setup = async (owned, dir, _, pillars) => {
  // The module signs with the master's own key, and checks that itself.
  await mkdir(path.join(dir, 'pki'), { recursive: true });
  await mkdir(path.join(dir, 'cache', 'proc'), { recursive: true });
  const [pem, pub] = [path.join(dir, 'pki', 'master.pem'), path.join(dir, 'pki', 'master.pub')];
  await run('openssl', ['genrsa', '-out', pem, '2048']);
  await run('openssl', ['rsa', '-in', pem, '-pubout', '-out', pub]);
  const bao = owned.use(await startOpenBao());
  await bao.call('secret/data/salt', { data: pillars });
  // The master gives each minion a token of its own, and keeps it: with this policy.
  await bao.call('sys/policies/acl/bench', { policy: 'path "secret/*" { capabilities = ["read"] }' });
  return {
    entries: [{ vault: 'secret/salt' }],
    is: 'vault (saltext-vault): one read of OpenBao, its token at hand',
    config: {
      vault: {
        auth: { method: 'token', token: bao.token },
        server: { url: bao.url },
        policies: { assign: ['bench'] },
        // As shipped, a token is good for one read and is kept by nobody: each compile waits two seconds for another.
        cache: { backend: 'disk' },
        issue: { token: { params: { num_uses: 0 } } },
      },
    },
  };
};

async function writeStack(dir: string, pillars: Pillars): Promise<string> {
  await mkdir(dir);
  const scopes = ['root', 'site', 'rack', 'role', 'minion'];
  const each = Math.ceil(Object.keys(pillars).length / scopes.length);
  for (const [s, scope] of scopes.entries()) {
    const own = Object.fromEntries(Object.entries(pillars).slice(s * each, (s + 1) * each));
    await writeFile(path.join(dir, `${scope}.yml`), JSON.stringify(own));
  }
  const file = path.join(dir, 'stack.cfg');
  await writeFile(file, scopes.map((scope) => `${scope}.yml\n`).join(''));
  return file;
}
