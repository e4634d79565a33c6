import {
  ColonnadeError,
  decodeTree,
  type Enc,
  hasEncMarker,
  hasNestedEncMarker,
  LIMITS,
  zEnc,
} from '@colonnade/contracts';
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
 * Whether a value came sealed, that is with the key `$enc` at its top.
 * @throws ColonnadeError `value_invalid` for a broken, misplaced or oversized one
 */
export function isSealedValue(value: Value): boolean {
  checkShape(value);
  if (!hasEncMarker(value)) return false;
  const { ct_b64 } = decodeEnc(value).$enc;
  const bytes = Buffer.byteLength(ct_b64, 'base64') - TAG_BYTES;
  if (bytes > LIMITS.valueBytes) throw invalid(`it holds ${bytes} bytes, more than ${LIMITS.valueBytes}`);
  return true;
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
  return new ColonnadeError(
    'value_invalid',
    `${FIELD}: ${why}`,
    cause === undefined ? { field: FIELD } : { field: FIELD, cause },
  );
}
