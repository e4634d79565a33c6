/** What a plain scalar of YAML means to the library Kubernetes reads YAML with (go-yaml 2: mostly YAML 1.1). */
export type Scalar =
  | { kind: 'null' }
  | { kind: 'bool'; value: boolean }
  | { kind: 'int'; value: bigint }
  | { kind: 'float'; value: number }
  | { kind: 'string' };

const NULL = /^(?:|~|null|Null|NULL)$/u;
const TRUE = /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON)$/u;
const FALSE = /^(?:n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/u;
const NOT_FINITE = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/u;
/** With `_` already left out. */
const INTEGER = /^([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9][0-9]*|0)$/u;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/u;
const DATE = /^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ]|$)/u;

const INT64_MIN = -(2n ** 63n);
const UINT64_MAX = 2n ** 64n - 1n;
const TEXT: Scalar = { kind: 'string' };

export function resolveScalar(text: string): Scalar {
  if (NULL.test(text)) return { kind: 'null' };
  if (TRUE.test(text)) return { kind: 'bool', value: true };
  if (FALSE.test(text)) return { kind: 'bool', value: false };
  if (NOT_FINITE.test(text)) return { kind: 'float', value: Number.NaN };
  if (!/^[-+.0-9]/u.test(text) || DATE.test(text)) return TEXT;
  if (text.startsWith('.')) return FLOAT.test(text) ? floatOf(text) : TEXT;
  const plain = text.replaceAll('_', '');
  const match = INTEGER.exec(plain);
  if (match !== null) {
    const value = integerOf(match[1] ?? '', match[2] ?? '');
    if (value >= INT64_MIN && value <= UINT64_MAX) return { kind: 'int', value };
  }
  return FLOAT.test(plain) ? floatOf(plain) : TEXT;
}

function integerOf(sign: string, digits: string): bigint {
  const octal = /^0[0-7]+$/u.test(digits) ? `0o${digits.slice(1)}` : digits;
  const value = BigInt(octal);
  return sign === '-' ? -value : value;
}

/** Go's ParseFloat fails where the number is out of range; the text is then a text. */
function floatOf(text: string): Scalar {
  const value = Number(text);
  return Number.isFinite(value) ? { kind: 'float', value } : TEXT;
}
