/**
 * At most `max` UTF-16 units of a text, well formed: a cut in the middle of a surrogate pair would leave half a
 * character, which no message can carry.
 */
export function clipText(text: string, max: number): string {
  return (text.length > max ? `${text.slice(0, max - 1)}…` : text).toWellFormed();
}
