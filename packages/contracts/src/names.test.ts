import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { z } from 'zod';
import {
  isSaltControlName,
  zCollectionId,
  zEnvName,
  zMasterId,
  zMinionId,
  zNewTemplateId,
  zPillarName,
  zUserSub,
} from './names.ts';

function table(name: string, schema: z.ZodType, good: readonly string[], bad: readonly string[]): void {
  describe(name, () => {
    for (const text of good)
      test(`takes ${JSON.stringify(text)}`, () => assert.ok(schema.safeParse(text).success));
    for (const text of bad) {
      test(`refuses ${JSON.stringify(text.slice(0, 30))}`, () => assert.ok(!schema.safeParse(text).success));
    }
  });
}

const SMUGGLED = [
  'a:b',
  'a;b',
  'a,b',
  'x;user:root',
  'a\u0000b',
  'a\nb',
  'a\u2028b',
  '\ud800',
  '',
  ' a',
  'a ',
];

table(
  'a collection id',
  zCollectionId,
  ['web', '65f1c0ffee', 'Серверы', 'a b'],
  [...SMUGGLED, 'x'.repeat(129), 'я'.repeat(65)],
);
table('a user sub', zUserSub, ['alice', 'auth0|123', 'a@b.example'], SMUGGLED);
table('an environment', zEnvName, ['base', 'prod-1'], SMUGGLED);
table('a minion id', zMinionId, ['web-1.example', 'минион'], [...SMUGGLED, 'a/b', 'a\\b', '../x', '.', '..']);
table(
  'a new template id',
  zNewTemplateId,
  ['deploy', 'шаблон'],
  [...SMUGGLED, 'a/b', 'a\\b', '../x', '.', '..'],
);
table(
  'a master id',
  zMasterId,
  ['salt', 'salt-east.1_a'],
  [...SMUGGLED, 'a*', 'a?', '[a]', '-a', '.a', 'мастер', 'a b', 'x'.repeat(129)],
);
table(
  'a pillar name',
  zPillarName,
  ['ntp', 'a:b', 'имя', 'a b', 'x'.repeat(255)],
  ['', '_errors', 'colonnade', 'a\u0007', 'a\u0085b', '\udc00', 'x'.repeat(256)],
);

test('names that steer Salt itself are known', () => {
  for (const name of ['schedule', 'beacons', 'mine_functions', 'master_tops'])
    assert.ok(isSaltControlName(name), name);
  for (const name of ['scheduled', 'masters', 'ntp']) assert.ok(!isSaltControlName(name), name);
});
