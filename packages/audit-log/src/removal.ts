/**
 * How a gap record of the log about itself says that rotated files were removed: its request URI ends in the chain's head where what is
 * kept begins. It stands in the line of both formats, and the chain covers it.
 */
export function removalUri(keptFrom: string): string {
  return `audit-sink:file?kept-from=${keptFrom}`;
}

const IN_LINE = /"?(?:requestURI"\s*:\s*| uri=)"audit-sink:file\?kept-from=([0-9a-f]{64})"/u;

/** The head that a record names which says so; undefined for any other line. */
export function readRemoval(line: string): string | undefined {
  return IN_LINE.exec(line)?.[1];
}
