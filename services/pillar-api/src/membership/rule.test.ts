import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type CollectionRule,
  decodeTree,
  type InventoryFacts,
  zCollectionRule,
  zInventoryFacts,
} from '@colonnade/contracts';
import { parseValue } from '@colonnade/value';
import { matchesGlob, ruleHolds } from './rule.ts';

const facts: InventoryFacts = decodeTree(
  zInventoryFacts,
  parseValue(`{"hostname":"web-1.example","os":{"name":"Debian","version":"13"},"ips":["192.0.2.1","2001:db8::1"],
    "roles":["web","edge"],"properties":{"rack":{"row":4,"dc":"fra"},"load":1.0,"spare":false,"tags":[],"nothing":null}}`),
);
const read = (text: string): CollectionRule => decodeTree(zCollectionRule, parseValue(text));
const holds = (text: string) => ruleHolds(read(text), { master: 'east', id: 'web-1', facts });

describe('a rule over an inventory', () => {
  const cases: readonly (readonly [rule: string, holds: boolean])[] = [
    ['{"field":"os.name","op":"eq","value":"Debian"}', true],
    ['{"field":"os.name","op":"eq","value":"debian"}', false],
    ['{"field":"os.name","op":"ne","value":"Ubuntu"}', true],
    ['{"field":"os.name","op":"ne","value":"Debian"}', false],
    // Nobody knows, so nobody is let in.
    ['{"field":"os.service_pack","op":"ne","value":"1"}', false],
    ['{"field":"os.service_pack","op":"eq","value":""}', false],
    ['{"field":"os.service_pack","op":"absent"}', true],
    ['{"field":"os.service_pack","op":"exists"}', false],
    ['{"field":"hostname","op":"exists"}', true],
    ['{"field":"hostname","op":"absent"}', false],
    ['{"field":"hostname","op":"glob","pattern":"web-*.example"}', true],
    ['{"field":"hostname","op":"glob","pattern":"web-1"}', false],
    ['{"field":"minion_id","op":"glob","pattern":"web-?"}', true],
    ['{"field":"master","op":"in","values":["west","east"]}', true],
    ['{"field":"agent_type","op":"in","values":["salt"]}', false],
    ['{"field":"roles","op":"eq","value":"edge"}', true],
    ['{"field":"roles","op":"ne","value":"edge"}', false],
    ['{"field":"ips","op":"glob","pattern":"2001:db8:*"}', true],
    ['{"field":"properties.rack.row","op":"eq","value":4}', true],
    ['{"field":"properties.rack.row","op":"eq","value":4.0}', false],
    ['{"field":"properties.rack.row","op":"eq","value":"4"}', false],
    ['{"field":"properties.rack","op":"exists"}', true],
    ['{"field":"properties.load","op":"eq","value":1.0}', true],
    ['{"field":"properties.spare","op":"eq","value":false}', true],
    ['{"field":"properties.tags","op":"exists"}', false],
    ['{"field":"properties.nothing","op":"exists"}', false],
    ['{"field":"properties.constructor","op":"exists"}', false],
    ['{"field":"properties.rack.row.x","op":"absent"}', true],
    [
      '{"all":[{"field":"roles","op":"eq","value":"web"},{"field":"os.version","op":"eq","value":"13"}]}',
      true,
    ],
    [
      '{"all":[{"field":"roles","op":"eq","value":"web"},{"field":"os.version","op":"eq","value":"12"}]}',
      false,
    ],
    [
      '{"any":[{"field":"roles","op":"eq","value":"db"},{"field":"os.version","op":"eq","value":"13"}]}',
      true,
    ],
    [
      '{"any":[{"all":[{"field":"roles","op":"eq","value":"db"}]},{"field":"master","op":"eq","value":"west"}]}',
      false,
    ],
  ];
  for (const [rule, expected] of cases) test(rule, () => assert.equal(holds(rule), expected));
});

describe('what is no rule', () => {
  const many = (count: number) =>
    `{"any":[${Array.from({ length: count }, (_, i) => `{"field":"roles","op":"eq","value":"r${i}"}`).join()}]}`;
  const nested = (levels: number): string =>
    levels === 1 ? '{"field":"roles","op":"exists"}' : `{"all":[${nested(levels - 1)}]}`;
  assert.ok(read(many(64)) && read(nested(4)));
  const cases = [
    ...['{}', '[]', 'null', '"web"', '{"all":[]}', '{"any":[]}', many(65), nested(5)],
    '{"field":"kernel","op":"exists"}',
    '{"field":"properties","op":"exists"}',
    '{"field":"properties..a","op":"exists"}',
    '{"field":"__proto__","op":"exists"}',
    '{"field":"roles","op":"regex","pattern":"a"}',
    '{"field":"roles","op":"eq"}',
    '{"field":"roles","op":"eq","value":null}',
    '{"field":"roles","op":"eq","value":["web"]}',
    '{"field":"roles","op":"exists","value":"x"}',
    '{"field":"roles","op":"in","values":[]}',
    '{"field":"roles","op":"glob","value":"x"}',
    '{"all":[{"field":"roles","op":"exists"}],"any":[{"field":"roles","op":"exists"}]}',
  ];
  for (const text of cases) test(text.slice(0, 80), () => assert.throws(() => read(text)));
});

test('globs: every part counts, and a hostile pattern takes no time', () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ['*', '', true],
    ['', '', true],
    ['', 'a', false],
    ['?', '', false],
    ['a*b*c', 'aXbYbZc', true],
    ['a*b*c', 'aXbYbZ', false],
    ['**', 'x', true],
    ['web.[0-9]', 'web.1', false],
    ['web.[0-9]', 'web.[0-9]', true],
    ['?', '😀', true],
  ];
  for (const [pattern, text, expected] of cases)
    assert.equal(matchesGlob(pattern, text), expected, `${pattern} ${text}`);
  assert.equal(matchesGlob(`${'*a'.repeat(500)}b`, 'a'.repeat(1000)), false);
});
