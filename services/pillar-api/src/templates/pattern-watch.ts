/** What the thread writes and its owner reads when it is late: the length of a text, and the text in UTF-8. */
export type PatternNote = SharedArrayBuffer;

const MAX_BYTES = 200;
const HEAD_BYTES = 4;

export function createPatternNote(): PatternNote {
  return new SharedArrayBuffer(HEAD_BYTES + MAX_BYTES);
}

/** The pattern that is being run now; undefined when none is. */
export function readPatternNote(note: PatternNote): string | undefined {
  const length = Atomics.load(new Int32Array(note, 0, 1), 0);
  if (length === 0) return undefined;
  const text = new TextDecoder().decode(new Uint8Array(note, HEAD_BYTES, length).slice());
  return text.replace(/\uFFFD+$/u, '');
}

type Engine = (pattern: string, flags: string) => RegExp;

/**
 * Patterns that say when they run, so that whoever ends the thread can name the one it was: the engine of the language
 * backtracks, and cannot be asked or stopped meanwhile.
 */
export function watchPatterns(note: PatternNote): Engine & { code: string } {
  const head = new Int32Array(note, 0, 1);
  const body = new Uint8Array(note, HEAD_BYTES);
  const engine: Engine = (pattern, flags) => {
    const regExp = new RegExp(pattern, flags);
    const text = new TextEncoder().encode(pattern || '(empty)').subarray(0, MAX_BYTES);
    const test = regExp.test.bind(regExp);
    regExp.test = (subject) => {
      body.set(text);
      Atomics.store(head, 0, text.length);
      const found = test(subject);
      Atomics.store(head, 0, 0);
      return found;
    };
    return regExp;
  };
  return Object.assign(engine, { code: 'watched' });
}
