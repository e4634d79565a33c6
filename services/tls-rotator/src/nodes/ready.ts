import { request } from 'node:http';
import { connect as connectTls } from 'node:tls';
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

/**
 * Whether the node's own API server says that it is ready: asked on its own port through the SSH connection, past every
 * balancer. Our token is only sent to who has a certificate of the cluster's authority.
 */
export async function isReady(ssh: Ssh, probe: ReadyProbe): Promise<boolean> {
  try {
    const channel = await ssh.forward(probe.port);
    const { ca, serverName } = probe;
    const socket = connectTls({
      socket: channel,
      servername: serverName,
      ...(ca === undefined ? {} : { ca }),
    });
    return await ask(socket, probe);
  } catch {
    return false;
  }
}

function ask(
  socket: ReturnType<typeof connectTls>,
  { serverName, authorization }: ReadyProbe,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const no = () => {
    socket.destroy();
    resolve(false);
  };
  const timer = setTimeout(no, PROBE_MS);
  socket.on('error', no);
  socket.on('close', no);
  socket.on('secureConnect', () => {
    const headers = {
      host: serverName,
      connection: 'close',
      ...(authorization === undefined ? {} : { authorization }),
    };
    const asked = request({ createConnection: () => socket, path: '/readyz', headers }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
      socket.destroy();
    });
    asked.on('error', no);
    asked.end();
  });
  return promise.finally(() => clearTimeout(timer));
}
