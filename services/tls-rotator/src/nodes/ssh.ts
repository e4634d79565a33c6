import type { Duplex } from 'node:stream';
import { ColonnadeError } from '@colonnade/contracts';
import { Client, type ClientChannel, type ConnectConfig, type ServerHostKeyAlgorithm } from 'ssh2';
import { checkHostKey, hasOnlyAuthority, type KnownHost, pinnedTypes } from '../rules/known-hosts.ts';
import { collect } from './collect.ts';
import { connectOpenSsh } from './openssh.ts';
import { readSshKey } from './private-key.ts';

export type SshTarget = {
  host: string;
  port: number;
  user: string;
  privateKey: string;
  knownHosts: readonly KnownHost[];
};
export type SshResult = { code: number; stdout: string; stderr: string };

/** One connection to one node. */
export type Ssh = AsyncDisposable & {
  /** @throws ColonnadeError `unavailable`: broken off, or too slow */
  run(command: string, input: string, timeoutMs: number): Promise<SshResult>;
  /** A stream to a port of the node itself. @throws ColonnadeError `unavailable` */
  forward(port: number): Promise<Duplex>;
  isOpen(): boolean;
};

const CONNECT_MS = 15_000;
/** For each type of key the ways to sign with it; SHA-1 is none. */
const ALGORITHMS: Readonly<Record<string, readonly ServerHostKeyAlgorithm[]>> = {
  'ssh-ed25519': ['ssh-ed25519'],
  'ecdsa-sha2-nistp256': ['ecdsa-sha2-nistp256'],
  'ecdsa-sha2-nistp384': ['ecdsa-sha2-nistp384'],
  'ecdsa-sha2-nistp521': ['ecdsa-sha2-nistp521'],
  'ssh-rsa': ['rsa-sha2-512', 'rsa-sha2-256'],
};

/**
 * Connects, to a host whose key is pinned and to no other; one that is known by the authority of its certificate alone
 * through OpenSSH.
 * @throws ColonnadeError `forbidden`: no pinned key, or another one; `unauthorized`: the node refuses our key;
 * `unprocessable`: the key cannot be read; `unavailable`
 */
export async function connectSsh(target: SshTarget): Promise<Ssh> {
  const { host, port, user, knownHosts } = target;
  const where = `${host}:${port}`;
  const types = pinnedTypes(knownHosts, host, port);
  const serverHostKey = types.flatMap((type) => ALGORITHMS[type] ?? []);
  if (hasOnlyAuthority(knownHosts, host, port)) return connectOpenSsh(target);
  if (serverHostKey.length === 0) throw unpinned(target);
  const client = new Client();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let refusal: ColonnadeError | undefined;
  let open = false;
  client.on('ready', () => {
    open = true;
    resolve();
  });
  client.on('close', () => {
    open = false;
    reject(refusal ?? new ColonnadeError('unavailable', `${where}: the connection was closed`));
  });
  client.on('error', (cause: Error & { level?: string }) => reject(refusal ?? sshError(cause, where, user)));
  const config: ConnectConfig = {
    ...{ host, port, username: user, privateKey: readSshKey(target.privateKey) },
    readyTimeout: CONNECT_MS,
    keepaliveInterval: 5000,
    keepaliveCountMax: 3,
    algorithms: { serverHostKey },
    hostVerifier: (key: Buffer) => {
      const verdict = checkHostKey(knownHosts, { host, port, key });
      if (!verdict.ok) refusal = refused(where, verdict.why);
      return verdict.ok;
    },
  };
  try {
    client.connect(config);
  } catch (cause) {
    throw new ColonnadeError('unprocessable', 'the SSH key cannot be read', { cause });
  }
  await promise;
  // An error later closes the connection; whoever waits on it is told by that.
  client.on('error', () => {});
  return {
    isOpen: () => open,
    run: (command, input, timeoutMs) => runCommand(client, { command, input, timeoutMs, where }),
    forward: (to) => forward(client, to, where),
    async [Symbol.asyncDispose]() {
      client.end();
      client.destroy();
    },
  };
}

function unpinned({ host, port }: SshTarget): ColonnadeError {
  const option = port === 22 ? '' : `-p ${port} `;
  return new ColonnadeError(
    'forbidden',
    `no host key of ${host} is pinned. Make a line with: ssh-keyscan ${option}${host} (then compare it with ssh-keygen -lf on the node)`,
  );
}

function refused(where: string, why: 'revoked' | 'changed' | 'new'): ColonnadeError {
  const what = { revoked: 'is revoked', changed: 'is not the pinned one', new: 'is not pinned' }[why];
  return new ColonnadeError('forbidden', `the host key of ${where} ${what}`);
}

function sshError(cause: Error & { level?: string }, where: string, user: string): ColonnadeError {
  if (cause.level === 'client-authentication')
    return new ColonnadeError('unauthorized', `${where} does not accept the key for ${user}`, { cause });
  if (/no matching.*host key/iu.test(cause.message))
    return new ColonnadeError('forbidden', `${where} has no key of the types that are pinned`, { cause });
  return new ColonnadeError('unavailable', `${where} cannot be reached by SSH: ${cause.message}`, { cause });
}

type Job = { command: string; input: string; timeoutMs: number; where: string };

function runCommand(client: Client, { command, input, timeoutMs, where }: Job): Promise<SshResult> {
  const { promise, resolve, reject } = Promise.withResolvers<SshResult>();
  const broken = () => reject(new ColonnadeError('unavailable', `${where}: the connection broke off`));
  const timer = setTimeout(() => {
    reject(new ColonnadeError('unavailable', `${where}: no end within ${timeoutMs} ms`));
    client.destroy();
  }, timeoutMs);
  client.once('close', broken);
  const start = (channel: ClientChannel) => {
    const stdout = collect();
    const stderr = collect();
    channel.on('data', stdout.keep);
    channel.stderr.on('data', stderr.keep);
    // Without a code it was cut off or ended by a signal: nobody knows what was done.
    channel.on('close', (code?: number | null) =>
      typeof code === 'number' ? resolve({ code, stdout: stdout.text(), stderr: stderr.text() }) : broken(),
    );
    channel.on('error', broken);
    channel.end(input);
  };
  client.exec(command, (cause, channel) => {
    if (cause) reject(new ColonnadeError('unavailable', `${where}: no command can be started`, { cause }));
    else start(channel);
  });
  return promise.finally(() => {
    clearTimeout(timer);
    client.removeListener('close', broken);
  });
}

function forward(client: Client, port: number, where: string): Promise<ClientChannel> {
  return new Promise((resolve, reject) => {
    client.forwardOut('127.0.0.1', 0, '127.0.0.1', port, (cause, channel) => {
      if (cause)
        reject(new ColonnadeError('unavailable', `${where}: nobody listens on port ${port}`, { cause }));
      else resolve(channel);
    });
  });
}
