import { ColonnadeError, decodeTree, type Enc, hasEncMarker, hasNestedEncMarker, LIMITS, zEnc } from '@colonnade/contracts';
import { canonicalBytes, checkValue, type Value } from '@colonnade/value';
import { fromValueError } from './http/body.ts';

const FIELD = 'value';
/** Bytes GCM adds to the plaintext. */
const TAG_BYTES = 16;

/**
 * Checks a value that is to be kept as it is, or to be sealed.
 * @throws ColonnadeError `value_invalid`: too deep, too large, or with a key `$enc` anywhere
 */
export function checkOpenValue(value: Value): void {
  checkShape(value);
  if (hasEncMarker(value) || hasNestedEncMarker(value)) {
    throw invalid('the key "$enc" marks a sealed value and may stand only at the top of a new secret');
  }
  const bytes = canonicalBytes(value).length;
  if (bytes > LIMITS.valueBytes) throw invalid(`it has ${bytes} bytes, more than ${LIMITS.valueBytes}`);
}

/**
 * Reads a value that came sealed. @returns undefined when it is not sealed
 * @throws ColonnadeError `value_invalid` for a broken, misplaced or oversized one
 */
export function readSealedValue(value: Value): Enc | undefined {
  checkShape(value);
  if (!hasEncMarker(value)) return undefined;
  const enc = decodeEnc(value);
  const bytes = Buffer.byteLength(enc.$enc.ct_b64, 'base64') - TAG_BYTES;
  if (bytes > LIMITS.valueBytes) throw invalid(`it holds ${bytes} bytes, more than ${LIMITS.valueBytes}`);
  return enc;
}

/** A value that was kept sealed. @throws ColonnadeError `decrypt_failed`: somebody else wrote it */
export function storedEnc(value: Value): Enc {
  try {
    return decodeTree(zEnc, value);
  } catch (cause) {
    throw new ColonnadeError('decrypt_failed', 'what is stored for this pillar is not a sealed value', { cause });
  }
}

function decodeEnc(value: Value): Enc {
  try {
    return decodeTree(zEnc, value);
  } catch (thrown) {
    throw invalid('it is not a well-formed "$enc" object of version 1', thrown);
  }
}

function checkShape(value: Value): void {
  try {
    checkValue(value, { maxDepth: LIMITS.valueDepth });
  } catch (thrown) {
    throw fromValueError(thrown, FIELD, FIELD);
  }
}

function invalid(why: string, cause?: unknown): ColonnadeError {
  return new ColonnadeError('value_invalid', `${FIELD}: ${why}`, cause === undefined ? { field: FIELD } : { field: FIELD, cause });
}
