import { ColonnadeError, LIMITS, toColonnadeError } from '@colonnade/contracts';

/** Fastify's own errors, by their code, in our words. Its messages may repeat input; ours do not. */
const FASTIFY: Readonly<Record<string, () => ColonnadeError>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () =>
    new ColonnadeError('unsupported_media_type', 'the body must be application/json in UTF-8'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () =>
    new ColonnadeError('bad_request', 'the body does not have the length its Content-Length says'),
  FST_ERR_CTP_BODY_TOO_LARGE: () =>
    new ColonnadeError('too_large', `the body is larger than ${LIMITS.httpBodyBytes} bytes`),
  FST_ERR_CTP_EMPTY_JSON_BODY: () => new ColonnadeError('bad_request', 'the body is empty'),
  FST_ERR_BAD_URL: () =>
    new ColonnadeError('bad_request', 'the path is not well formed: a bad percent-encoding'),
  FST_ERR_MAX_PARAM_LENGTH: () => new ColonnadeError('not_found', 'an id in the path is too long to exist'),
};

/** Turns anything a handler or Fastify throws into our error; total. */
export function fromHttpError(thrown: unknown): ColonnadeError {
  if (thrown instanceof ColonnadeError) return thrown;
  const { code, statusCode } = (thrown ?? {}) as { code?: unknown; statusCode?: unknown };
  const known = typeof code === 'string' ? FASTIFY[code] : undefined;
  if (known !== undefined) return known();
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    return new ColonnadeError('bad_request', 'the request is not well formed', { cause: thrown });
  }
  return toColonnadeError(thrown);
}
