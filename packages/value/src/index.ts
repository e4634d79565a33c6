export { canonicalBytes, canonicalText } from './canonical.ts';
export { checkValue, isValue } from './check.ts';
export { valuesEqual } from './equal.ts';
export { type Position, ValueError, type ValueErrorCode } from './errors.ts';
export { parseValue } from './parse.ts';
export { fromPlain, toPlain } from './plain.ts';
export type { Limits, Value, ValueObject } from './value.ts';
export { valueFromYaml } from './yaml-read.ts';
export { valueToYaml } from './yaml-write.ts';
