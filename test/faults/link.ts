import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A connection between two parts that can be taken away: a TCP proxy on a port of its own. */
export type Link = AsyncDisposable & {
  readonly port: number;
  /** Resets every connection, and those that come, until it is healed. */
  cut(): void;
  /** Lets nothing through, in either direction, and keeps the connections, until it is healed. */
  stall(): void;
  heal(): void;
};

type Pair = { near: Socket; far: Socket };

/** @param toPort where the real one listens, on 127.0.0.1 */
export async function openLink(toPort: number): Promise<Link> {
  const pairs = new Set<Pair>();
  let state: 'open' | 'cut' | 'stalled' = 'open';
  const server = createServer((near) => {
    if (state === 'cut') return void near.on('error', () => {}).resetAndDestroy();
    const pair = { near, far: connect(toPort, '127.0.0.1') };
    pairs.add(pair);
    joinEnds(pair, () => void pairs.delete(pair));
    if (state === 'open') flow(pair);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const resetAll = () => {
    for (const { near, far } of pairs) {
      near.resetAndDestroy();
      far.resetAndDestroy();
    }
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      state = 'cut';
      resetAll();
    },
    stall() {
      state = 'stalled';
      for (const pair of pairs) stop(pair);
    },
    heal() {
      if (state === 'stalled') for (const pair of pairs) flow(pair);
      state = 'open';
    },
    async [Symbol.asyncDispose]() {
      state = 'cut';
      resetAll();
      server.close();
      await once(server, 'close');
    },
  };
}

/** When one side goes, so does the other; nothing here is worth an error. */
function joinEnds({ near, far }: Pair, gone: () => void): void {
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const) {
    one.setNoDelay(true);
    one.on('error', () => {});
    one.on('close', () => {
      other.destroy();
      gone();
    });
  }
}

function flow({ near, far }: Pair): void {
  near.pipe(far);
  far.pipe(near);
}

function stop({ near, far }: Pair): void {
  near.unpipe(far).pause();
  far.unpipe(near).pause();
}
