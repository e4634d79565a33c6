import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type Balancer = AsyncDisposable & { port: number };

/** A port of this host behind which several servers are: each connection goes to the next one that takes it. */
export async function startBalancer(targets: readonly { host: string; port: number }[]): Promise<Balancer> {
  const open = new Set<Socket>();
  let turn = 0;
  const keep = (socket: Socket) => {
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => open.delete(socket));
  };
  const attempt = (near: Socket, left: number) => {
    if (left === 0) return void near.destroy();
    turn += 1;
    const { host, port } = targets[turn % targets.length] as { host: string; port: number };
    const far = connect({ host, port, timeout: 3000 });
    keep(far);
    far.once('connect', () => {
      far.setTimeout(0);
      near.pipe(far).pipe(near);
      far.on('close', () => near.destroy());
      near.on('close', () => far.destroy());
    });
    far.once('timeout', () => far.destroy(new Error('too slow')));
    far.once('error', () => {
      if (far.bytesRead === 0 && far.bytesWritten === 0) attempt(near, left - 1);
    });
  };
  const server = createServer({ pauseOnConnect: false }, (near) => {
    keep(near);
    near.pause();
    attempt(near, targets.length);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
