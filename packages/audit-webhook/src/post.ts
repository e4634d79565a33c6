import http from 'node:http';
import https from 'node:https';
import { ColonnadeError } from '@colonnade/contracts';
import type { WebhookTarget } from './kubeconfig.ts';

/** What the webhook answered. */
export type Answer = { status: number; retryAfterMs: number | undefined };

/** Sends bodies to one webhook, over connections that are kept. */
export type Poster = Disposable & {
  /** @throws ColonnadeError `unavailable`: no whole answer came */
  post(body: Uint8Array, timeoutMs: number, giveUp?: AbortSignal): Promise<Answer>;
};

const MAX_RETRY_AFTER_MS = 10 * 60 * 1000;

export function createPoster(target: WebhookTarget): Poster {
  const secure = target.url.protocol === 'https:';
  const agent = secure
    ? new https.Agent({ keepAlive: true, maxSockets: 2, ...target.tls })
    : new http.Agent({ keepAlive: true, maxSockets: 2 });
  const request = secure ? https.request : http.request;
  return {
    post(body, timeoutMs, giveUp) {
      const { promise, resolve, reject } = Promise.withResolvers<Answer>();
      const fail = (code: string) =>
        reject(new ColonnadeError('unavailable', `the webhook gave no whole answer: ${code}`));
      const headers: Record<string, string | number> = {
        'content-type': 'application/json',
        accept: 'application/json',
        'content-length': body.length,
        'user-agent': 'colonnade-audit-sink',
      };
      try {
        const authorization = target.authorization();
        if (authorization !== undefined) headers.authorization = authorization;
      } catch {
        fail('the token file cannot be read');
        return promise;
      }
      const outgoing = request(target.url, { method: 'POST', agent, headers });
      // Over the whole exchange, as Kubernetes' client has it: a webhook that sends a byte a second is slow, not alive.
      const timer = setTimeout(() => outgoing.destroy(new Error('timeout')), timeoutMs);
      const breakOff = () => outgoing.destroy(new Error('given up'));
      giveUp?.addEventListener('abort', breakOff, { once: true });
      outgoing.on('response', (response) => {
        // Read to its end, so that a cut-off one is told from a whole one, and not kept; an endless one runs out of time.
        response.resume();
        response.on('end', () => {
          if (!response.complete) return fail('cut off');
          resolve({
            status: response.statusCode ?? 0,
            retryAfterMs: parseRetryAfter(response.headers['retry-after'], Date.now()),
          });
        });
        response.on('error', (error) => fail(codeOf(error)));
        response.on('aborted', () => fail('cut off'));
      });
      outgoing.on('error', (error) => fail(codeOf(error)));
      outgoing.end(body);
      return promise.finally(() => {
        clearTimeout(timer);
        giveUp?.removeEventListener('abort', breakOff);
      });
    },
    [Symbol.dispose]: () => agent.destroy(),
  };
}

/** Codes such as ECONNREFUSED, or CERT_HAS_EXPIRED; texts of TLS errors may hold names, which are no secrets. */
function codeOf(error: Error & { code?: string }): string {
  return error.code ?? error.message;
}

/** Seconds, or an HTTP date. */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^\d{1,9}$/u.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  if (Number.isNaN(ms)) return undefined;
  return Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}
