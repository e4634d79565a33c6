import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { fromPlain, parseValue, type Value, type ValueObject, valueToYaml } from '@colonnade/value';

/** How the webhook answers a list; undefined: 200. */
export type Behaviour = (
  ids: readonly string[],
  response: ServerResponse,
  request: IncomingMessage,
) => Promise<void> | void;

/** A webhook that keeps what it has taken. */
export async function startWebhook(behave?: Behaviour) {
  const taken: Value[] = [];
  const lists: string[][] = [];
  let current = behave;
  const server = createServer((request, response) => {
    void (async () => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const list = parseValue(Buffer.concat(parts), { maxDepth: 512 }) as ValueObject;
      const items = list.items as ValueObject[];
      const ids = items.map((e) => String(e.auditID));
      lists.push(ids);
      await current?.(ids, response, request);
      if (response.headersSent || response.destroyed) return;
      taken.push(...items);
      response.writeHead(200).end('{}');
    })();
  });
  let port = 0;
  const listen = () => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', () => resolve()));
  await listen();
  port = (server.address() as AddressInfo).port;
  return {
    url: `http://127.0.0.1:${port}/audit`,
    taken,
    lists,
    ids: () => taken.map((e) => String((e as ValueObject).auditID)),
    behave: (next: Behaviour | undefined) => {
      current = next;
    },
    /** Nobody listens at the address. */
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
    start: listen,
    [Symbol.asyncDispose]: async () => {
      if (!server.listening) return;
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A kubeconfig file for an address. */
export async function writeKubeconfig(dir: string, cluster: object, user: object = {}): Promise<string> {
  const file = path.join(dir, `webhook-${Math.random().toString(36).slice(2)}.kubeconfig`);
  const config = fromPlain({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'main',
    contexts: [{ name: 'main', context: { cluster: 'sink', user: 'sender' } }],
    clusters: [{ name: 'sink', cluster }],
    users: [{ name: 'sender', user }],
  });
  await writeFile(file, valueToYaml(config), { mode: 0o600 });
  return file;
}
