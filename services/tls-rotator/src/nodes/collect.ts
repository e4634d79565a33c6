const MAX_OUTPUT = 1024 * 1024;

/** What a program says, as far as it is kept. A character may come in two parts, so text is made of the whole. */
export function collect() {
  const parts: Buffer[] = [];
  let bytes = 0;
  return {
    keep(part: Buffer) {
      if (bytes < MAX_OUTPUT) parts.push(part);
      bytes += part.length;
    },
    text: () => Buffer.concat(parts).toString('utf8'),
  };
}
