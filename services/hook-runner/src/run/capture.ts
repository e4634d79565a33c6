import { StringDecoder } from 'node:string_decoder';

/** What one stream of a hook wrote: its first bytes are kept, line by line, the rest is counted. */
export type Capture = {
  write(chunk: Buffer): void;
  /** The last line may have no end. */
  end(): { text: string; droppedBytes: number };
};

/** A line in the log is no longer than this; what is longer comes as several. */
const MAX_LINE = 8192;

/**
 * @param limitBytes kept of the stream; of what comes after it only the length is known
 * @param onLine told each line without its end; bytes that are no UTF-8 come as U+FFFD
 */
export function createCapture(limitBytes: number, onLine: (line: string) => void): Capture {
  const decoder = new StringDecoder('utf8');
  let text = '';
  let line = '';
  let room = limitBytes;
  let droppedBytes = 0;
  const take = (part: string) => {
    text += part;
    const lines = (line + part).split('\n');
    line = lines.pop() ?? '';
    for (const one of lines) tell(one.endsWith('\r') ? one.slice(0, -1) : one, onLine);
    for (; line.length > MAX_LINE; line = line.slice(MAX_LINE)) onLine(line.slice(0, MAX_LINE));
  };
  return {
    write(chunk) {
      const kept = chunk.subarray(0, room);
      room -= kept.length;
      droppedBytes += chunk.length - kept.length;
      if (kept.length > 0) take(decoder.write(kept));
    },
    end() {
      take(decoder.end());
      if (line !== '') tell(line, onLine);
      line = '';
      return { text, droppedBytes };
    },
  };
}

function tell(line: string, onLine: (line: string) => void): void {
  for (let at = 0; at === 0 || at < line.length; at += MAX_LINE) onLine(line.slice(at, at + MAX_LINE));
}
