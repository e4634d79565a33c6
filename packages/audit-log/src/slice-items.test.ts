import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sliceItems } from './slice-items.ts';

const cases: [string, string[]][] = [
  ['{"items":[]}', []],
  ['{"items":[ ]}', []],
  ['{"items":null}', []],
  ['{"items":[1]}', ['1']],
  [
    '{"kind":"items","items":[{"a":[1,2],"items":[3]},"x,]\\"}",null],"more":[9]}',
    ['{"a":[1,2],"items":[3]}', '"x,]\\"}"', 'null'],
  ],
  ['{"metadata":{"items":[7]},"\\u0069tems" : [ {"a":"\\\\"} , 2 ]}', ['{"a":"\\\\"}', '2']],
];

for (const [text, items] of cases) {
  test(text, () =>
    assert.deepEqual(
      sliceItems(text).map((item) => item.trim()),
      items,
    ),
  );
}
