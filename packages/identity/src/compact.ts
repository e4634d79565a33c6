/** Base64url of at least one byte, written the one way there is: no padding, no blanks, no stray bits behind the last byte. */
const PART = '(?=[\\w-])(?:[\\w-]{4})*(?:[\\w-][AQgw]|[\\w-]{2}[AEIMQUYcgkosw048])?';
const COMPACT = new RegExp(`^${PART}\\.${PART}\\.${PART}$`, 'u');

/**
 * Whether a text is a signed token in its one spelling (RFC 7515, 7.1). The library also decodes signatures with padding, blanks or
 * stray bits in them; then one token would have many texts, and whoever remembers or revokes tokens by their text would miss some.
 */
export function isCompactToken(text: string): boolean {
  return COMPACT.test(text);
}
