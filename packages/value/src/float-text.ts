/**
 * The text of a finite double exactly as Python's `repr` writes it: `1.0`, `-0.0`, `1e+16`, `1e-07`. Both languages
 * write the shortest digits that read back the same; they differ in when an exponent is used and how it looks.
 */
export function floatText(float: number): string {
  const size = Math.abs(float);
  if (size >= 1e16 || (size < 1e-4 && size > 0)) {
    return float.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
  }
  if (!Number.isInteger(float)) return String(float);
  return Object.is(float, -0) ? '-0.0' : `${float}.0`;
}
