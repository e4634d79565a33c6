import type { AuditAttributes } from '@colonnade/audit';
import type { Random } from '../../support/random.ts';
import { type Tree, toJson, toYaml } from './tree.ts';
import { patterns, words } from './words.ts';

/** Scalars that only look like texts, or that have the wrong type. */
const LITERALS = ['null', '1', '1.5', 'true', 'false', '-0', '1e3', '[]', '{}'];
const YAML_LITERALS = [
  'yes',
  'no',
  'on',
  'y',
  'N',
  '~',
  '0x1f',
  '0777',
  '1_000',
  '2001-01-01',
  '.5',
  '1:30',
  '0o7',
  '',
];
const YAML_BAD = [
  '.inf',
  '-.INF',
  '.nan',
  '*nowhere',
  '!!int x',
  '!!bool 1',
  '!!str 5',
  '!local 7',
  '!!binary YQ==',
  '!!float 3',
];
const NAMES = ['foo', 'Level', 'rule', 'users ', 'metadata', 'namespace', 'RULES', 'x.y', ''];

/** One policy as text: most are well formed, many have a fault or two, in JSON or YAML. */
export function generatePolicy(random: Random): string {
  const yaml = random.chance(0.6);
  const faults = random.chance(0.5) ? 0 : random.pick([0.005, 0.02, 0.1]);
  const tree = makePolicy({ random, yaml, faults });
  const text = yaml ? addAnchors(toYaml(tree, random), random) : toJson(tree, random);
  return random.chance(0.04) ? spoil(text, yaml, random) : text;
}

type Making = { random: Random; yaml: boolean; faults: number };

function makePolicy(making: Making): Tree {
  const { random } = making;
  const entries: [string, Tree][] = [
    [
      'apiVersion',
      {
        text: faulty(making, 'audit.k8s.io/v1', ['audit.k8s.io/v2', 'v1', '', 'audit.k8s.io', '/', 'a/b/c']),
      },
    ],
    ['kind', { text: faulty(making, 'Policy', ['policy', 'Event', 'PolicyList', '', 'EventList']) }],
    ['rules', makeRules(making)],
  ];
  if (random.chance(0.3)) entries.push(['omitStages', makeStages(making)]);
  if (random.chance(0.3)) entries.push(['omitManagedFields', makeFlag(making)]);
  if (random.chance(0.15)) entries.push(['metadata', makeMetadata(making)]);
  return disturb(making, entries);
}

function makeRules(making: Making): Tree {
  const { random } = making;
  if (happens(making))
    return random.pick<Tree>([{ list: [] }, { literal: 'null' }, { text: 'all' }, { map: [] }]);
  const count = random.chance(0.1) ? 30 + random.below(70) : 1 + random.below(6);
  return {
    list: Array.from({ length: count }, () => (happens(making, 0.2) ? wrong(making) : makeRule(making))),
  };
}

function makeRule(making: Making): Tree {
  const { random } = making;
  const entries: [string, Tree][] = [
    ['level', { text: faulty(making, random.pick(patterns.levels), patterns.badLevels) }],
  ];
  const add = (probability: number, key: string, make: () => Tree) => {
    if (random.chance(probability)) entries.push([key, make()]);
  };
  add(0.3, 'users', () => makeTexts(making, words.users));
  add(0.3, 'userGroups', () => makeTexts(making, words.groups));
  add(0.4, 'verbs', () => makeTexts(making, words.verbs));
  add(0.2, 'omitStages', () => makeStages(making));
  add(0.2, 'omitManagedFields', () => makeFlag(making));
  const kind = random.below(3);
  if (kind === 0 || happens(making)) {
    const urls = happens(making) ? patterns.badUrls : patterns.urls;
    entries.push(['nonResourceURLs', makeTexts(making, urls)]);
  }
  if (kind === 1) {
    entries.push(['resources', makeResources(making)]);
    add(0.4, 'namespaces', () => makeTexts(making, words.namespaces));
  }
  add(happens(making) ? 0.5 : 0, 'namespaces', () => makeTexts(making, words.namespaces));
  return disturb(making, shuffle(entries, random));
}

function makeResources(making: Making): Tree {
  const { random } = making;
  const entry = (): Tree => {
    const entries: [string, Tree][] = [];
    if (random.chance(0.9))
      entries.push(['group', { text: faulty(making, random.pick(words.apiGroups), patterns.badGroups) }]);
    const resources = makeTexts(making, patterns.resources);
    if (random.chance(0.8)) entries.push(['resources', resources]);
    const isNamed = 'list' in resources && resources.list.length > 0 && entries.at(-1)?.[0] === 'resources';
    if (random.chance(isNamed ? 0.3 : 0) || happens(making))
      entries.push(['resourceNames', makeTexts(making, words.names)]);
    return disturb(making, entries);
  };
  return { list: Array.from({ length: random.below(4) }, entry) };
}

function makeTexts(making: Making, list: readonly string[]): Tree {
  if (happens(making)) return wrong(making);
  const texts = making.random.some(list, 3).map((text): Tree => (happens(making) ? wrong(making) : { text }));
  return { list: texts };
}

function makeStages(making: Making): Tree {
  return makeTexts(making, happens(making) ? patterns.badStages : patterns.stages);
}

function makeFlag(making: Making): Tree {
  return happens(making) ? wrong(making) : { literal: making.random.pick(['true', 'false']) };
}

function makeMetadata(making: Making): Tree {
  const texts: [string, Tree][] = ['a', 'b', 'yes'].map((key) => [
    key,
    happens(making, 2) ? wrong(making) : { text: key },
  ]);
  const times = [
    '2024-02-29T12:00:00Z',
    '2023-02-29T12:00:00Z',
    'today',
    '2024-01-01T00:00:00.5+01:00',
    '2024-01-01',
  ];
  return disturb(making, [
    ['name', { text: 'audit' }],
    ['labels', disturb(making, texts)],
    [
      'generation',
      happens(making, 3)
        ? wrong(making)
        : { literal: making.random.pick(['1', '-5', '9223372036854775807']) },
    ],
    ['creationTimestamp', { text: faulty(making, '2024-01-01T00:00:00Z', times) }],
    ['finalizers', makeTexts(making, words.names)],
    [
      'ownerReferences',
      {
        list: [
          disturb(making, [
            ['controller', makeFlag(making)],
            ['uid', { text: 'u' }],
          ]),
        ],
      },
    ],
  ]);
}

/** Sometimes a key too many, a key twice, or a key that goes elsewhere. */
function disturb(making: Making, entries: [string, Tree][]): Tree {
  const { random } = making;
  const result = [...entries];
  const insert = (entry: [string, Tree]) => result.splice(random.below(result.length + 1), 0, entry);
  if (happens(making)) insert([random.pick(NAMES), wrong(making)]);
  if (happens(making) && entries.length > 0) insert([random.pick(entries)[0], wrong(making)]);
  if (happens(making) && entries.length > 1) insert([random.pick(entries)[0], random.pick(entries)[1]]);
  if (happens(making) && entries.length > 0) insert(random.pick(entries));
  return { map: result };
}

function wrong({ random, yaml }: Making): Tree {
  const literals = yaml ? [...LITERALS, ...YAML_LITERALS, ...YAML_LITERALS, ...YAML_BAD] : LITERALS;
  const inner = { map: [['level', { text: 'None' }]] } as Tree;
  return random.pick<Tree>([
    { literal: random.pick(literals) },
    { literal: random.pick(literals) },
    { list: [inner] },
    inner,
    { text: 'x' },
  ]);
}

function faulty({ random, faults }: Making, right: string, bad: readonly string[]): string {
  return random.chance(faults) ? random.pick(bad) : right;
}

function happens({ random, faults }: Making, factor = 1): boolean {
  return random.chance(Math.min(0.5, faults * factor));
}

function shuffle<T>(list: T[], random: Random): T[] {
  return list
    .map((item) => [random.below(1000), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}

/** The first rules named, and others that repeat or merge them. */
function addAnchors(text: string, random: Random): string {
  if (!random.chance(0.15)) return text;
  const lines = text.split('\n');
  const rules = lines.flatMap((line, n) => (/^ *- level: /u.test(line) ? [n] : []));
  const named = rules.slice(0, 1 + random.below(3));
  for (const n of named) {
    lines[n] = (lines[n] ?? '').replace(
      /^( *)- level: /u,
      (_, pad: string) => `${pad}- &r${n}\n${pad}  level: `,
    );
  }
  for (const n of rules.slice(named.length)) {
    if (random.chance(0.5)) continue;
    const target = random.pick(named);
    const merged = random.pick([
      `*r${target}`,
      `[*r${target}, {verbs: [get]}]`,
      `[{level: None}, *r${target}]`,
      '{users: []}',
    ]);
    lines[n] = (lines[n] ?? '').replace(/^( *)- /u, (_, pad: string) =>
      random.pick([
        `${pad}- *r${target}\n${pad}- `,
        `${pad}- <<: ${merged}\n${pad}  `,
        `${pad}- "<<": 1\n${pad}  `,
      ]),
    );
  }
  return lines.join('\n');
}

/**
 * A text that something happened to: cut off, a line gone, a character too many. The last only in JSON: of YAML that is
 * hardly YAML every parser makes something else.
 */
function spoil(text: string, yaml: boolean, random: Random): string {
  const at = random.below(text.length);
  const kind = random.below(yaml ? 2 : 3);
  if (kind === 0) return text.slice(0, at);
  if (kind === 1)
    return text
      .split('\n')
      .toSpliced(random.below(text.split('\n').length), 1)
      .join('\n');
  return `${text.slice(0, at)}${random.pick(['{', ']', '"', ',', '\0', 'ä'])}${text.slice(at)}`;
}

export function generateRequest(random: Random): AuditAttributes {
  const isResource = random.chance(0.7);
  const user = random.chance(0.05)
    ? undefined
    : { name: random.pick(words.users), groups: random.some(words.groups, 3) };
  const of = (list: readonly string[]) => (isResource ? random.pick(list) : '');
  return {
    user,
    verb: random.pick(words.verbs),
    isResource,
    apiGroup: of(words.apiGroups),
    resource: of(words.resources),
    subresource: of(words.subresources),
    namespace: of(words.namespaces),
    name: of(words.names),
    path: random.pick(words.paths),
  };
}
