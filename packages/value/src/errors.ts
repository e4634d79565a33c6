/** Why a text or a value was refused. `not_a_value` is only for values in memory, the others for texts too. */
export type ValueErrorCode =
  | 'syntax'
  | 'duplicate_key'
  | 'too_deep'
  | 'too_large'
  | 'invalid_utf8'
  | 'lone_surrogate'
  | 'number_range'
  | 'not_a_value';

/** A place in a text. */
export interface Position {
  /** UTF-16 units from the start of the text: an index into the JavaScript string. */
  readonly offset: number;
  /** From 1; a line ends with LF, CR or CR LF. */
  readonly line: number;
  /** From 1, in characters (code points). */
  readonly column: number;
}

/**
 * A text that is no value, or a value that cannot be written. The message and the fields never hold any of the
 * content, which may be a secret. The position is absent where there is no text or the text was not looked at.
 */
export class ValueError extends Error {
  override readonly name = 'ValueError';
  readonly code: ValueErrorCode;
  readonly offset: number | undefined;
  readonly line: number | undefined;
  readonly column: number | undefined;

  constructor(code: ValueErrorCode, reason: string, position?: Position) {
    super(position ? `${reason} (line ${position.line}, column ${position.column})` : reason);
    this.code = code;
    this.offset = position?.offset;
    this.line = position?.line;
    this.column = position?.column;
  }
}

/** The error for a place in a text. Line and column are only counted here, off the fast path. */
export function errorAt(code: ValueErrorCode, reason: string, text: string, offset: number): ValueError {
  const before = text.slice(0, offset).split(/\r\n|\r|\n/);
  const column = [...(before.at(-1) ?? '')].length + 1;
  return new ValueError(code, reason, { offset, line: before.length, column });
}
