import https from 'node:https';
import { ColonnadeError, type ErrorCode } from '@colonnade/contracts';
import { KubeConfig } from '@kubernetes/client-node';

export type KubeRequest = {
  query?: Readonly<Record<string, string>>;
  body?: unknown;
  /** `application/merge-patch+json` for a PATCH. */
  type?: string;
  signal?: AbortSignal;
  /** How long the answer may take, milliseconds. */
  timeoutMs?: number;
};

/** What we ask of an API server. Errors are ColonnadeErrors whose code tells what to do. */
export type KubeClient = Disposable & {
  /** @throws ColonnadeError `not_found`, `conflict`, `expired` (410), `rate_limited`, `forbidden`, `unprocessable`, `unavailable` … */
  request<T>(method: string, path: string, options?: KubeRequest): Promise<T>;
  /** Reads a watch line by line until it ends or the signal. @throws ColonnadeError as request does */
  watch(
    path: string,
    query: Readonly<Record<string, string>>,
    onLine: (line: string) => void,
    signal: AbortSignal,
  ): Promise<void>;
  /** CA and bearer token, to ask one API server past every balancer. */
  credentials(): Promise<{ ca: Buffer | string | undefined; authorization: string | undefined }>;
};

const CODES: Readonly<Record<number, ErrorCode>> = {
  400: 'bad_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  410: 'expired',
  413: 'too_large',
  422: 'unprocessable',
  429: 'rate_limited',
};
const REQUEST_TIMEOUT_MS = 15_000;
/** Tokens of a Pod are renewed on disk; the client looks there when asked. */
const CREDENTIALS_MS = 30_000;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

type Access = { options: https.RequestOptions; agent: https.Agent; sign: string; atMs: number };

/**
 * Requests with the credentials of a kubeconfig, or of the Pod where there is none. The typed client's own requests are
 * not used: a merge patch with a resourceVersion and a watch that can be given up are ten lines each.
 * @throws ColonnadeError `misconfigured`: there is no readable kubeconfig
 */
export function createKubeClient(kubeconfigFile: string | undefined): KubeClient {
  const config = new KubeConfig();
  try {
    if (kubeconfigFile === undefined) config.loadFromCluster();
    else config.loadFromFile(kubeconfigFile);
  } catch (cause) {
    throw new ColonnadeError('misconfigured', 'KUBECONFIG_FILE is not a readable kubeconfig', { cause });
  }
  const server = config.getCurrentCluster()?.server;
  if (server === undefined) throw new ColonnadeError('misconfigured', 'the kubeconfig names no cluster');
  let access: Access | undefined;
  const current = async (): Promise<Access> => {
    if (access !== undefined && Date.now() - access.atMs < CREDENTIALS_MS) return access;
    const options: https.RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    const { ca, cert, key, servername, rejectUnauthorized } = options;
    const tls = { ca, cert, key, servername, rejectUnauthorized };
    const sign = JSON.stringify(tls);
    // A CA or certificate that was exchanged on disk: connections of before still stand for the old one.
    if (access?.sign !== sign) access?.agent.destroy();
    const agent =
      access?.sign === sign ? access.agent : new https.Agent({ keepAlive: true, maxSockets: 64, ...tls });
    access = { options, agent, sign, atMs: Date.now() };
    return access;
  };
  const open = async (method: string, path: string, how: KubeRequest) =>
    send(await current(), `${server}${path}`, method, how);
  return {
    async request<T>(method: string, path: string, how: KubeRequest = {}): Promise<T> {
      const response = await open(method, path, how);
      const text = await readText(response, path);
      const status = response.statusCode ?? 0;
      // The next request looks for a new token.
      if (status === 401 && access !== undefined) access.atMs = 0;
      if (status >= 300) throw statusError(method, path, status, text);
      return parseAnswer<T>(text, path);
    },
    async watch(path, query, onLine, signal) {
      const response = await open('GET', path, { query: { ...query, watch: 'true' }, signal, timeoutMs: 0 });
      if (response.statusCode !== 200)
        throw statusError('GET', path, response.statusCode ?? 0, await readText(response, path));
      await readLines(response, path, onLine);
    },
    async credentials() {
      const { options } = await current();
      const { authorization, Authorization } = (options.headers ?? {}) as Record<string, string | undefined>;
      return { ca: options.ca as Buffer | string | undefined, authorization: authorization ?? Authorization };
    },
    [Symbol.dispose]: () => access?.agent.destroy(),
  };
}

type Response = import('node:http').IncomingMessage;

function send({ options, agent }: Access, url: string, method: string, how: KubeRequest): Promise<Response> {
  const { query, body, type = 'application/json', signal, timeoutMs = REQUEST_TIMEOUT_MS } = how;
  const search = query === undefined ? '' : `?${new URLSearchParams(query)}`;
  const headers: Record<string, string> = {
    accept: 'application/json',
    ...(options.headers as Record<string, string>),
  };
  const payload = body === undefined ? undefined : JSON.stringify(body);
  if (payload !== undefined) headers['content-type'] = type;
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  const request = https.request(
    `${url}${search}`,
    { ...options, headers, agent, method, ...(signal === undefined ? {} : { signal }), timeout: timeoutMs },
    resolve,
  );
  request.on('timeout', () => request.destroy(new Error('no answer in time')));
  request.on('error', (cause) => {
    reject(new ColonnadeError('unavailable', `${method} ${url}: the API server does not answer`, { cause }));
  });
  request.end(payload);
  return promise;
}

async function readText(response: Response, path: string): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of response as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > MAX_ANSWER_BYTES) throw new ColonnadeError('too_large', `${path}: the answer is too large`);
      parts.push(part);
    }
  } catch (cause) {
    if (cause instanceof ColonnadeError) throw cause;
    throw new ColonnadeError('unavailable', `${path}: the answer broke off`, { cause });
  }
  return Buffer.concat(parts).toString('utf8');
}

async function readLines(response: Response, path: string, onLine: (line: string) => void): Promise<void> {
  response.setEncoding('utf8');
  let rest = '';
  try {
    for await (const part of response as AsyncIterable<string>) {
      const lines = (rest + part).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line !== '') onLine(line);
    }
  } catch (cause) {
    throw new ColonnadeError('unavailable', `${path}: the watch broke off`, { cause });
  }
}

function parseAnswer<T>(text: string, path: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new ColonnadeError('unavailable', `${path}: the answer is not JSON`, { cause });
  }
}

/** A Status of Kubernetes. Of what concerns Secrets only the fields at fault are told, never a value. */
export type KubeStatus = {
  reason?: string;
  message?: string;
  code?: number;
  details?: { causes?: readonly { field?: string; reason?: string }[] };
};

function statusError(method: string, path: string, status: number, text: string): ColonnadeError {
  let answer: KubeStatus = {};
  try {
    answer = JSON.parse(text) as KubeStatus;
  } catch {
    // A balancer's own page: the status has to do.
  }
  return kubeError(`${method} ${path}`, status, answer);
}

/** What an answer of this status means. */
export function kubeError(what: string, status: number, answer: KubeStatus): ColonnadeError {
  const code = CODES[status] ?? 'unavailable';
  const causes = (answer.details?.causes ?? []).map(({ field, reason }) =>
    `${field ?? '?'} ${reason ?? ''}`.trim(),
  );
  const isSecret = what.includes('/secrets');
  const told = isSecret ? causes.slice(0, 4).join(', ') : (answer.message ?? '').slice(0, 300);
  const detail = [answer.reason, told].filter((part) => part !== undefined && part !== '').join(': ');
  return new ColonnadeError(code, `${what}: ${status}${detail === '' ? '' : ` ${detail}`}`);
}

export const MERGE_PATCH = 'application/merge-patch+json';
