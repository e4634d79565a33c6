/** Of a key, or of something about it. */
export function keyPath(name: string, ...more: readonly string[]): string {
  return ['/keys', name, ...more].map((part, i) => (i === 0 ? part : encodeURIComponent(part))).join('/');
}
