import { type IncomingMessage, request } from 'node:http';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { readLoadedHash } from '../rules/auth-config.ts';
import type { Ssh } from './ssh.ts';

export type ReadyProbe = {
  port: number;
  /** A name of the API server's certificate. */
  serverName: string;
  /** The authority of the API server's certificate. */
  ca: Buffer | string | undefined;
  authorization: string | undefined;
};

const PROBE_MS = 5000;
/** Metrics of a large cluster are tens of megabytes; they come in the order of their names, ours among the first. */
const METRICS_MS = 20_000;
const MAX_LINE = 64 * 1024;

/**
 * Whether the node's own API server says that it is ready: asked on its own port through the SSH connection, past every
 * balancer. Our token is only sent to who has a certificate of the cluster's authority.
 */
export async function isReady(ssh: Ssh, probe: ReadyProbe): Promise<boolean> {
  const read = async (response: IncomingMessage) => response.statusCode === 200;
  return (await ask(ssh, probe, { path: '/readyz', timeoutMs: PROBE_MS, read })) ?? false;
}

/**
 * SHA-256 of the authentication configuration the node's own API server runs with (Kubernetes ≥ 1.34), asked in the same
 * way.
 * @returns undefined: it does not answer, does not let us, or tells of none
 */
export function loadedConfig(ssh: Ssh, probe: ReadyProbe): Promise<string | undefined> {
  return ask(ssh, probe, { path: '/metrics', timeoutMs: METRICS_MS, read: findHash });
}

async function findHash(response: IncomingMessage): Promise<string | undefined> {
  if (response.statusCode !== 200) return undefined;
  response.setEncoding('utf8');
  let rest = '';
  for await (const part of response as AsyncIterable<string>) {
    const lines = (rest + part).split('\n');
    rest = (lines.pop() ?? '').slice(0, MAX_LINE);
    for (const line of lines) {
      const found = readLoadedHash(line);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

type Question<T> = { path: string; timeoutMs: number; read: (response: IncomingMessage) => Promise<T> };

/** @returns undefined: no answer in time, or one that broke off */
async function ask<T>(
  ssh: Ssh,
  { port, ca, serverName, authorization }: ReadyProbe,
  { path, timeoutMs, read }: Question<T>,
): Promise<T | undefined> {
  let socket: TLSSocket | undefined;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const none = () => resolve(undefined);
  const timer = setTimeout(none, timeoutMs);
  const answer = async () => {
    const channel = await ssh.forward(port);
    socket = connectTls({ socket: channel, servername: serverName, ...(ca === undefined ? {} : { ca }) });
    const response = await send(socket, { path, serverName, authorization });
    return await read(response);
  };
  try {
    return (await Promise.race([answer().catch(none), promise])) as T | undefined;
  } finally {
    clearTimeout(timer);
    socket?.destroy();
  }
}

function send(
  socket: TLSSocket,
  {
    path,
    serverName,
    authorization,
  }: { path: string; serverName: string; authorization: string | undefined },
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const closed = () => reject(new Error('the connection was closed'));
  socket.on('error', reject);
  socket.on('close', closed);
  socket.on('secureConnect', () => {
    const headers = {
      host: serverName,
      connection: 'close',
      ...(authorization === undefined ? {} : { authorization }),
    };
    const asked = request({ createConnection: () => socket, path, headers }, resolve);
    asked.on('error', reject);
    asked.end();
  });
  return promise;
}
