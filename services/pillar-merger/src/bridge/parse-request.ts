import { type BridgeRequest, ColonnadeError, LIMITS, readBridgeRequest } from '@colonnade/contracts';
import type { Entry } from './entry.ts';

/**
 * Reads the request of an entry.
 * @throws ColonnadeError `bad_request`, or `forbidden` when it names another master than its stream does
 */
export function parseRequest(entry: Entry): BridgeRequest {
  const { data } = entry;
  if (data === undefined)
    throw new ColonnadeError('bad_request', 'the entry does not have the one field of a request');
  if (data === 'too_long') {
    throw new ColonnadeError('bad_request', `the request is longer than ${LIMITS.bridgeRequestBytes} bytes`);
  }
  const request = readBridgeRequest(data);
  // Only this master may write to its stream, so the stream's name tells the truth.
  if (request.master !== entry.master)
    throw new ColonnadeError('forbidden', 'the request names another master');
  return request;
}

/** Milliseconds a request may take from its entry's id on: as it asks, capped; the cap when it cannot be read. */
export function ttlOf(request: BridgeRequest | undefined): number {
  return Math.min(request?.ttl_ms ?? LIMITS.bridgeTtlMaxMs, LIMITS.bridgeTtlMaxMs);
}
