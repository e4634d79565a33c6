import { ColonnadeError, isErrorCode } from '@colonnade/contracts';
import { canonicalText, parseValue, toPlain, type Value, ValueError } from '@colonnade/value';

export type ApiAnswer = { status: number; headers: Headers; value: Value | undefined };

/** What is sent as it comes, such as an import; it is never held whole. */
export type ApiStream = {
  body?: ReadableStream<Uint8Array>;
  headers?: Readonly<Record<string, string>>;
};

/** pillar-api over HTTP with one token. Bodies are Values, so integer, float and text stay apart in both directions. */
export type ApiClient = {
  /** Any status is an answer. @throws ColonnadeError `unavailable` when nobody answers */
  send(method: string, path: string, body?: Value, headers?: Record<string, string>): Promise<ApiAnswer>;
  /** As send, but an answer from 400 on is thrown with its stable code; its `cause` is the problem document. */
  call(method: string, path: string, body?: Value, headers?: Record<string, string>): Promise<ApiAnswer>;
  /** An answer as it comes; from 400 on it is thrown as in call. @throws ColonnadeError */
  stream(method: string, path: string, options?: ApiStream): Promise<Response>;
};

export type ApiClientOptions = {
  /** Breaks requests off. */
  signal?: AbortSignal;
  /** For the whole of one `send` or `call`, milliseconds; a stream may last. Default: no limit. */
  timeoutMs?: number;
};

/** @param baseUrl where pillar-api is; a path in it is kept before every route */
export function createApiClient(baseUrl: string, token: string, options: ApiClientOptions = {}): ApiClient {
  const base = new URL(baseUrl);
  const prefix = base.pathname.replace(/\/+$/u, '');
  const request = async (
    method: string,
    path: string,
    init: { body?: string | ReadableStream<Uint8Array>; headers: Record<string, string> },
    signals: AbortSignal[],
  ) => {
    const signal = signals.length === 0 ? null : AbortSignal.any(signals);
    try {
      // Undici wants to be told that a streamed body is not answered before its end.
      const streamed = typeof init.body === 'object' ? { duplex: 'half' as const } : {};
      const headers = { authorization: `Bearer ${token}`, ...init.headers };
      return await fetch(new URL(prefix + path, base), { method, ...init, headers, signal, ...streamed });
    } catch (cause) {
      throw asUnavailable(base, cause);
    }
  };
  const signals = () => (options.signal === undefined ? [] : [options.signal]);
  const send: ApiClient['send'] = async (method, path, body, headers = {}) => {
    const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    const init = {
      headers: { ...json, ...headers },
      ...(body === undefined ? {} : { body: canonicalText(body) }),
    };
    const limits = options.timeoutMs === undefined ? [] : [AbortSignal.timeout(options.timeoutMs)];
    return await readAnswer(base, await request(method, path, init, [...signals(), ...limits]));
  };
  return {
    send,
    async call(method, path, body, headers) {
      const answer = await send(method, path, body, headers);
      if (answer.status >= 400) throw problemOf(answer, `${method} ${path}`);
      return answer;
    },
    async stream(method, path, { body, headers = {} } = {}) {
      const init = { headers: { ...headers }, ...(body === undefined ? {} : { body }) };
      const response = await request(method, path, init, signals());
      if (response.status < 400) return response;
      throw problemOf(await readAnswer(base, response), `${method} ${path}`);
    },
  };
}

async function readAnswer(base: URL, response: Response): Promise<ApiAnswer> {
  const { status, headers } = response;
  try {
    const bytes = new Uint8Array(await response.arrayBuffer());
    const isJson = /^application\/(?:[a-z.+-]+\+)?json/u.test(headers.get('content-type') ?? '');
    return { status, headers, value: bytes.length > 0 && isJson ? parseValue(bytes) : undefined };
  } catch (cause) {
    if (!(cause instanceof ValueError)) throw asUnavailable(base, cause);
    const what = `${base.origin} does not answer as pillar-api does`;
    throw new ColonnadeError('internal', what, { cause });
  }
}

function asUnavailable(base: URL, cause: unknown): ColonnadeError {
  const why = reasonOf(cause);
  const what = `pillar-api does not answer at ${base.origin}${why === undefined ? '' : ` (${why})`}`;
  return new ColonnadeError('unavailable', what, { cause });
}

/** Codes such as ECONNREFUSED or SELF_SIGNED_CERT_IN_CHAIN, which fetch hides behind "fetch failed". */
function reasonOf(thrown: unknown): string | undefined {
  if (thrown instanceof DOMException) return thrown.name;
  const { code, cause } = (thrown ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === 'string') return code;
  return cause === undefined ? undefined : reasonOf(cause);
}

function problemOf(answer: ApiAnswer, what: string): ColonnadeError {
  const problem = toPlain(answer.value ?? null) as Record<string, unknown> | null;
  const code = isErrorCode(problem?.code) ? problem.code : 'internal';
  const detail = typeof problem?.detail === 'string' ? problem.detail : '';
  const said = typeof problem?.said === 'string' ? `: ${problem.said}` : '';
  const field = typeof problem?.field === 'string' ? { field: problem.field } : {};
  return new ColonnadeError(code, `${what}: ${answer.status} ${detail}${said}`.trimEnd(), {
    ...field,
    cause: answer.value,
  });
}
