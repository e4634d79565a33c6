import {
  BRIDGE_ERROR_CODES,
  type BridgeErrorCode,
  ColonnadeError,
  type ErrorCode,
  encodeText,
  LIMITS,
  zBridgeReply,
} from '@colonnade/contracts';
import { canonicalText } from '@colonnade/value';
import type { MergeAnswer } from '../answer-merge.ts';

/**
 * The canonical text of a good reply. Written out here and not by the schema's encoder, which would walk and copy the
 * whole pillar twice more.
 * @throws ColonnadeError `too_large`
 */
export function successText(entryId: string, { clock, pillar }: Omit<MergeAnswer, 'secrets'>): string {
  const text = `{"clock":${clock},"id":"${entryId}","ok":true,"pillar":${canonicalText(pillar)},"v":1}`;
  // A text of n units has at least n bytes, so most replies need no second count.
  const fits =
    3 * text.length <= LIMITS.bridgeReplyBytes || Buffer.byteLength(text) <= LIMITS.bridgeReplyBytes;
  if (fits) return text;
  throw new ColonnadeError('too_large', `the merged pillar is over ${LIMITS.bridgeReplyBytes} bytes`);
}

export function errorText(entryId: string, error: ColonnadeError): string {
  const { code, message } = toBridgeError(error);
  return encodeText(zBridgeReply, { v: 1, id: entryId, ok: false, error: { code, message } });
}

const MAX_MESSAGE = 500;

const MEANT: Partial<Record<ErrorCode, BridgeErrorCode>> = {
  bus_unavailable: 'unavailable',
  redis_unavailable: 'unavailable',
  rate_limited: 'overloaded',
  misconfigured: 'unavailable',
  key_not_configured: 'kms_refused',
  kid_unknown: 'kms_refused',
  decrypt_failed: 'kms_refused',
};

/** Total: a code the bridge does not have becomes the nearest one, else `internal` without the original text. */
export function toBridgeError(error: ColonnadeError): { code: BridgeErrorCode; message: string } {
  const own = BRIDGE_ERROR_CODES.find((code) => code === error.code) ?? MEANT[error.code];
  if (own === undefined) return { code: 'internal', message: 'an unexpected fault' };
  return { code: own, message: error.message.slice(0, MAX_MESSAGE).toWellFormed() };
}
