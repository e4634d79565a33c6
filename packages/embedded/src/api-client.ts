import { ColonnadeError, isErrorCode } from '@colonnade/contracts';
import { canonicalText, parseValue, toPlain, type Value } from '@colonnade/value';

export type ApiAnswer = { status: number; headers: Headers; value: Value | undefined };

/** pillar-api over HTTP with one token. Bodies are Values, so integer, float and text stay apart in both directions. */
export type ApiClient = {
  /** Any status is an answer. @throws ColonnadeError `unavailable` when nobody answers */
  send(method: string, path: string, body?: Value, headers?: Record<string, string>): Promise<ApiAnswer>;
  /** As send, but an answer from 400 on is thrown with its stable code. */
  call(method: string, path: string, body?: Value, headers?: Record<string, string>): Promise<ApiAnswer>;
};

/** @param limitMs how long to wait for a whole answer; without it as long as the connection stands */
export function createApiClient(baseUrl: string, token: string, limitMs?: number): ApiClient {
  const unanswered = (cause: unknown): never => {
    throw new ColonnadeError('unavailable', `pillar-api does not answer at ${baseUrl}`, { cause });
  };
  const send: ApiClient['send'] = async (method, path, body, headers = {}) => {
    const response = await fetch(new URL(path, baseUrl), {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: canonicalText(body) }),
      ...(limitMs === undefined ? {} : { signal: AbortSignal.timeout(limitMs) }),
    }).catch(unanswered);
    const bytes = new Uint8Array(await response.arrayBuffer().catch(unanswered));
    const isJson = /^application\/(?:[a-z.+-]+\+)?json/u.test(response.headers.get('content-type') ?? '');
    const value = bytes.length > 0 && isJson ? parseValue(bytes) : undefined;
    return { status: response.status, headers: response.headers, value };
  };
  return {
    send,
    async call(method, path, body, headers) {
      const answer = await send(method, path, body, headers);
      if (answer.status >= 400) throw problemOf(answer, `${method} ${path}`);
      return answer;
    },
  };
}

function problemOf(answer: ApiAnswer, what: string): ColonnadeError {
  const problem = toPlain(answer.value ?? null) as { code?: unknown; detail?: unknown } | null;
  const code = isErrorCode(problem?.code) ? problem.code : 'internal';
  return new ColonnadeError(code, `${what}: ${answer.status} ${String(problem?.detail ?? '')}`);
}
