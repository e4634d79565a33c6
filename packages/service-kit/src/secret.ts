import { inspect } from 'node:util';

/** A secret setting. Logging, printing or serialising it gives `[secret]`; only `reveal()` gives the text. */
export type Secret = { reveal(): string; toString(): string; toJSON(): string };

export function createSecret(text: string): Secret {
  const hidden = () => '[secret]';
  return Object.freeze({ reveal: () => text, toString: hidden, toJSON: hidden, [inspect.custom]: hidden });
}
