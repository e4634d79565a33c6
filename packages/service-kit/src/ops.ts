import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Health } from './health.ts';
import type { Logger } from './logger.ts';
import type { Metrics } from './metrics.ts';

export type OpsAnswer = {
  status: number;
  contentType: string;
  body: string;
  headers?: Record<string, string>;
};
/** A further GET route of the ops server, such as the JWKS. */
export type OpsRoute = { path: string; answer: () => Promise<OpsAnswer> | OpsAnswer };
export type OpsServer = AsyncDisposable & { url: string };

/** The answers of the three doors every service has. */
export function opsRoutes(health: Health, metrics: Metrics): readonly OpsRoute[] {
  const json = (status: number, body: object): OpsAnswer => ({
    status,
    contentType: 'application/json',
    body: JSON.stringify(body),
  });
  return [
    { path: '/healthz', answer: () => json(200, { ok: true }) },
    {
      path: '/readyz',
      answer: async () => {
        const readiness = await health.ready();
        return json(readiness.ok ? 200 : 503, readiness);
      },
    },
    {
      path: '/metrics',
      answer: async () => ({ status: 200, contentType: metrics.contentType, body: await metrics.render() }),
    },
  ];
}

/** A small HTTP server for liveness, readiness, metrics and what else is public. GET and HEAD only, no bodies read. */
export async function createOpsServer(options: {
  host: string;
  port: number;
  health: Health;
  metrics: Metrics;
  logger: Logger;
  extraRoutes?: readonly OpsRoute[];
}): Promise<OpsServer> {
  const routes = [...opsRoutes(options.health, options.metrics), ...(options.extraRoutes ?? [])];
  const byPath = new Map(routes.map((r) => [r.path, r]));
  const server = createServer(
    { requestTimeout: 10_000, headersTimeout: 5000, maxHeaderSize: 16_384 },
    (req, res) => {
      void handle(byPath, req, res).catch((thrown) => {
        options.logger.error({ err: thrown }, 'ops request failed');
        send(res, { status: 500, contentType: 'application/json', body: '{"code":"internal"}' });
      });
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  const { address, port, family } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

async function handle(
  routes: ReadonlyMap<string, OpsRoute>,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const path = (req.url ?? '/').split('?', 1)[0] ?? '/';
  const found = routes.get(path);
  if (found === undefined)
    return send(res, { status: 404, contentType: 'application/json', body: '{"code":"not_found"}' });
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    return send(res, {
      status: 405,
      contentType: 'application/json',
      body: '{"code":"bad_request"}',
      headers: { allow: 'GET, HEAD' },
    });
  }
  send(res, await found.answer());
}

function send(res: ServerResponse, answer: OpsAnswer): void {
  if (res.headersSent) return;
  res.writeHead(answer.status, {
    'content-type': answer.contentType,
    'cache-control': 'no-store',
    ...answer.headers,
  });
  res.end(answer.body);
}
