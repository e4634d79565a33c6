import {
  BRIDGE_ERROR_CODES,
  type BridgeErrorCode,
  ColonnadeError,
  type ErrorCode,
  encodeText,
  LIMITS,
  zBridgeReply,
} from '@colonnade/contracts';
import { canonicalText, type Value } from '@colonnade/value';
import type { MergeAnswer } from '../answer-merge.ts';

/**
 * The canonical text of a good reply. Written out here and not by the schema's encoder, which would walk and copy the
 * whole pillar twice more.
 * @throws ColonnadeError `too_large`
 */
export function successText(entryId: string, { clock, pillar }: MergeAnswer): string {
  const text = `{"clock":${clock},"id":"${entryId}","ok":true,"pillar":${pillarText(pillar)},"v":1}`;
  // A text of n units has at least n bytes, so most replies need no second count.
  const fits =
    3 * text.length <= LIMITS.bridgeReplyBytes || Buffer.byteLength(text) <= LIMITS.bridgeReplyBytes;
  if (fits) return text;
  throw new ColonnadeError('too_large', `the merged pillar is over ${LIMITS.bridgeReplyBytes} bytes`);
}

/**
 * Values that are stored do not change and stand in many replies. An opened one is held by its reply alone, and its text
 * goes with it.
 */
const texts = new WeakMap<object, string>();

function textOf(value: Value): string {
  if (typeof value !== 'object' || value === null) return canonicalText(value);
  const text = texts.get(value) ?? canonicalText(value);
  texts.set(value, text);
  return text;
}

/** The canonical text of a pillar, put together from those of its values. */
function pillarText(pillar: { readonly [name: string]: Value }): string {
  const names = Object.keys(pillar);
  // Their order by code points is another one than that of sort().
  if (names.some((name) => SURROGATE.test(name))) return canonicalText({ ...pillar });
  const members = names.sort().map((name) => `${canonicalText(name)}:${textOf(pillar[name] as Value)}`);
  return `{${members.join(',')}}`;
}

const SURROGATE = /[\ud800-\udfff]/;

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
