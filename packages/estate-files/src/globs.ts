/** Whether a text fits a shell glob as Salt's `fnmatch` has it: `*`, `?`, `[seq]`, `[!seq]`. */
export function fitsGlob(glob: string, text: string): boolean {
  const known = new Map<string, boolean>();
  const parts = partsOf(glob);
  const characters = [...text];
  const fits = (part: number, at: number): boolean => {
    const key = `${part}/${at}`;
    const seen = known.get(key);
    if (seen !== undefined) return seen;
    const result = fitsFrom(part, at);
    known.set(key, result);
    return result;
  };
  const fitsFrom = (part: number, at: number): boolean => {
    const wanted = parts[part];
    if (wanted === undefined) return at === characters.length;
    if (wanted === '*') return fits(part + 1, at) || (at < characters.length && fits(part, at + 1));
    return at < characters.length && wanted(characters[at] as string) && fits(part + 1, at + 1);
  };
  return fits(0, 0);
}

type Part = '*' | ((character: string) => boolean);

function partsOf(glob: string): Part[] {
  const characters = [...glob];
  const parts: Part[] = [];
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at] as string;
    const end = character === '[' ? endOfSet(characters, at) : -1;
    if (character === '*') {
      if (parts.at(-1) !== '*') parts.push('*');
    } else if (character === '?') parts.push(() => true);
    else if (end > 0) {
      parts.push(setOf(characters.slice(at + 1, end)));
      at = end;
    } else parts.push((one) => one === character);
  }
  return parts;
}

/** Where the `]` of a set is, which may begin with one; -1: the bracket is text. */
function endOfSet(characters: readonly string[], start: number): number {
  const from = characters[start + 1] === '!' ? start + 3 : start + 2;
  return characters.indexOf(']', from);
}

function setOf(given: readonly string[]): (character: string) => boolean {
  const negated = given[0] === '!';
  const set = negated ? given.slice(1) : given;
  const has = (character: string) => {
    for (let at = 0; at < set.length; at++) {
      const [from, dash, to] = set.slice(at, at + 3);
      if (dash === '-' && to !== undefined) {
        if (character >= (from as string) && character <= to) return true;
        at += 2;
      } else if (character === from) return true;
    }
    return false;
  };
  return negated ? (character) => !has(character) : has;
}
