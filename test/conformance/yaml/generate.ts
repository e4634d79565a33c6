import fc from 'fast-check';

/** YAML documents that are likely to be read in more than one way. */

const WORDS = [
  'yes Yes YES yEs y Y no NO n N on On off OFF true True tRue false FALSE ~ null Null NULL nUll << = == < <<< none None . ..',
  '0644 -0644 +0644 0 00 -0 +0 -00 08 0o17 0O17 0b101 -0b1 0b 0b_ 0b2 0x1F 0x 0x_ 0X1F -0x1f +0x_1 0_ 0_7 -0_7 0_0 -0_',
  '1_000 1__0 _1 1_ 12e45678 12e+45678 1e5 1E-5 1.5e5 1.5e+5 1.5E-5 .5 -.5 +.5 5. 5.e+3 1_0.5 1._5 1.0e+308 1.0e+309',
  '4.9e-324 1.0e-400 .inf -.INF +.Inf .nan .NaN -.nan 1.0 -0.0 1:30 -1:30 1:30:59 190:20:30 190:20:30.15 1:60 0:30 01:30',
  '1:5 -1:30.5 1:30. 1_0:30 2024-01-01 2024-1-1 2024-13-45 2001-12-14t21:59:43.10-05:00 12:30:45 1.2.3 10.0.0.1 10.0.0.0/8',
  '9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 0777777777777777777777 a=b a:b a#b v1',
  '1e e1 + -1- 1-2 0755a ::1 fe80::1 -x ?x :x /etc/salt @a %a `a !a & * | > it\'s a"b salt://x http://h:80/p?a=b#c C:\\x',
  '$enc 1,2 1,000 naïve 日本 😀 a\u00a0b -- ---x',
]
  .flatMap((words) => words.split(' '))
  .concat('2001-12-14 21:59:43.10 -5', 'a b', '1 2', '0 1', 'yes no');

/** Numbers as people and programs write them, and what only looks like one. */
const numberLike = fc
  .array(fc.constantFrom(...'00112345678_.:+-eExXbBoTZ'), { minLength: 1, maxLength: 9 })
  .map((parts) => parts.join(''));
const twisted = fc
  .tuple(
    fc.constantFrom(...WORDS),
    fc.constantFrom('', '', '-', '+', '0', '_', '.'),
    fc.constantFrom('', '', '_', '.', '0', ':30', 'e+3'),
  )
  .map(([word, before, after]) => before + word + after);

const plainScalar = fc
  .oneof(fc.constantFrom(...WORDS), numberLike, twisted)
  // Alone on a line it ends a document.
  .filter((text) => text !== '...');

/** A `-` alone in brackets is text to Salt only, and refused here. */
const inFlow = (text: string) => !/^-$|[[\]{},]/.test(text);

/** A scalar in a place of a document: by itself, as an item, as a value, as a key, in brackets, quoted, anchored. */
export const scalarDocument = fc.tuple(plainScalar, fc.integer({ min: 0, max: 11 })).map(([text, place]) => {
  if (place >= 5 && place <= 7 && !inFlow(text)) return `- ${text}\n`;
  switch (place) {
    case 0:
      return text;
    case 1:
      return `- ${text}\n- x\n`;
    case 2:
      return `k: ${text}\n`;
    case 3:
      return `${text}: v\n`;
    case 4:
      return `k: ${text} # a comment\n`;
    case 5:
      return `[${text}, ${text}]`;
    case 6:
      return `{${text}: 1}`;
    case 7:
      return `{k: ${text}}`;
    case 8:
      return `'${text.replaceAll("'", "''")}': ${JSON.stringify(text)}\n`;
    case 9:
      return `a: &x ${text}\nb: *x\n`;
    case 10:
      return `a: !!str ${text}\n`;
    default:
      return `k: |\n  ${text}\n  ${text}\nl: >-\n  ${text}\n  ${text}\n`;
  }
});

/** A mapping of few names, so that keys meet: in merges, as anchors, twice, once as text and once as a number. */
const key = fc.oneof(
  {
    weight: 30,
    arbitrary: fc.constantFrom(
      'a',
      'b',
      'c',
      'd',
      'e',
      '"a"',
      "'b'",
      '"1"',
      '=',
      '"<<"',
      'd e',
      '2024-01-01',
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom('1', 'yes', '0644', '~', '1.5') },
);
const leaf = fc.constantFrom('1', 'x', '~', '0644', 'yes', '"q"', '[1, x]', '{a: 1}', '2024-01-01', '');

const ownPairs = fc.uniqueArray(fc.tuple(key, leaf), {
  maxLength: 3,
  selector: ([name]) => name.replaceAll(/["']/g, ''),
});
const doubledPairs = fc.array(fc.tuple(key, leaf), { maxLength: 4 });
const anchor = fc.constantFrom('*m0', '*m0', '*m0', '*m1', '*m1', '*m2', '*m3');
const merge = fc.oneof(
  { weight: 12, arbitrary: anchor },
  {
    weight: 6,
    arbitrary: fc
      .uniqueArray(fc.oneof(anchor, fc.constantFrom('{z: 1}', '{a: 5}')), { maxLength: 3 })
      .map((all) => `[${all.join(', ')}]`),
  },
  { weight: 1, arbitrary: fc.constantFrom('{a: 7, q: 8}', '*s', 'x', '~', '[x]', '"*m0"') },
);

/** Anchored mappings, each of which may merge the ones before it. */
export const mergeDocument = fc
  .array(
    fc.tuple(
      fc.oneof({ weight: 20, arbitrary: ownPairs }, { weight: 1, arbitrary: doubledPairs }),
      fc.option(merge),
      fc.nat(4),
      fc.boolean(),
    ),
    {
      minLength: 2,
      maxLength: 5,
    },
  )
  .map((maps) => {
    const text = maps.map(([pairs, merged, place, flow], index) => {
      const lines = pairs.map(([name, value]) => (flow ? `${name}: ${value || '~'}` : `  ${name}: ${value}`));
      // A mapping that merges itself is beyond what is worth reading; Salt does.
      const target = merged?.replaceAll(new RegExp(`\\*m[${index}-9]`, 'g'), '{y: 3}');
      if (target !== undefined)
        lines.splice(Math.min(place, lines.length), 0, flow ? `<<: ${target}` : `  <<: ${target}`);
      if (flow || lines.length === 0) return `k${index}: &m${index} {${lines.join(', ')}}`;
      return `k${index}: &m${index}\n${lines.join('\n')}`;
    });
    return `s: &s scalar\n${text.join('\n')}\nlast: [*m0, *s]\n`;
  });

const PIECES = 'a|b| |  |:|: |#| # c|- |?|"|\'|,|[|]|{|}|>|&x |*x|!|\t|1|é'.split('|').concat('|');
const STARTS = '|  |    |- |k: |k:|  k: |  - |? |k: >-|---|...'.split('|').concat('', 'k: |', '  k: |+');

const line = fc.array(fc.constantFrom(...PIECES), { maxLength: 7 }).map((parts) => parts.join(''));

/** Lines that may or may not be YAML, indented at random: what the two grammars make of them. */
export const roughDocument = fc
  .array(fc.tuple(fc.constantFrom(...STARTS), line), { minLength: 1, maxLength: 5 })
  .map((lines) => lines.map(([start, rest]) => start + rest).join('\n'));
