import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

/** How a text may have been written down: as it is, in base64 at each of its three alignments, or escaped in JSON. */
function formsOf(secret: string): readonly string[] {
  const bytes = Buffer.from(secret, 'utf8');
  const base64 = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64');
    // Only the characters that do not depend on what stands before or after.
    return text.slice(shift === 0 ? 0 : shift + 1, text.length - 4 - (text.length % 4));
  });
  const url = base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'));
  const escaped = JSON.stringify(secret).slice(1, -1);
  const ascii = [...escaped].map((c) => (c > '\u007f' ? unicodeEscape(c) : c)).join('');
  return [...new Set([secret, escaped, ascii, bytes.toString('hex'), ...base64, ...url])].filter(
    (f) => f.length >= 8,
  );
}

function unicodeEscape(character: string): string {
  return [...Array(character.length).keys()]
    .map((i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`)
    .join('');
}

/** Every trace of a secret in some bytes, as `<place>: <which secret>`; the secret itself is not repeated. */
export function findTraces(place: string, bytes: Buffer, secrets: readonly string[]): string[] {
  return secrets.flatMap((secret, i) =>
    formsOf(secret).some((form) => bytes.includes(form)) ? [`${place}: secret ${i}`] : [],
  );
}

/** Searches every file below a folder; one that goes away meanwhile is passed over. */
export async function searchFolder(
  dir: string,
  secrets: readonly string[],
): Promise<{ files: number; traces: string[] }> {
  let files = 0;
  const traces: string[] = [];
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    const bytes = await readFile(file).catch(() => undefined);
    if (bytes === undefined) continue;
    files += 1;
    traces.push(...findTraces(file, bytes, secrets));
  }
  return { files, traces };
}
