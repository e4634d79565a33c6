import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCopy } from './copy.ts';
import type { KubeObject } from './objects.ts';

const at = (version: number, name = 'a'): KubeObject => ({
  metadata: { name, uid: 'u', resourceVersion: String(version) },
});
const copy = () => {
  const changed: string[] = [];
  const made = createCopy<string>({
    keep: ({ metadata }) => metadata.resourceVersion,
    onChange: (key) => void changed.push(key),
  });
  return { ...made, changed };
};

test('an answer that comes after the watch has told of a later change does not undo it', () => {
  const { put, pass, note, get } = copy();
  put(at(101));
  pass('101');
  note(at(100));
  assert.equal(get('a'), '101');
});

test('nor does it bring back what the watch has told is gone', () => {
  const { put, drop, pass, note, get } = copy();
  put(at(9));
  drop(at(101));
  pass('101');
  note(at(100));
  assert.equal(get('a'), undefined);
});

test('what an answer shows ahead of the watch stays until the watch is there too', () => {
  const { put, drop, pass, note, get, changed } = copy();
  put(at(98));
  pass('98');
  note(at(100));
  const told = changed.length;
  put(at(99));
  drop(at(99));
  assert.equal(get('a'), '100');
  assert.equal(changed.length, told);
  put(at(101));
  assert.equal(get('a'), '101');
  drop(at(102));
  assert.equal(get('a'), undefined);
});

test('a list takes away what is gone, but not what was made after it', () => {
  const { replace, note, entries } = copy();
  replace([at(1, 'old'), at(2, 'stays')], '10');
  note(at(21, 'made'));
  note(at(22, 'stays'));
  replace([at(2, 'stays')], '20');
  assert.deepEqual([...entries()].sort(), [
    ['made', '21'],
    ['stays', '22'],
  ]);
});

test('a store that was restored from a copy, with lower versions, is believed', () => {
  const { put, pass, replace, entries } = copy();
  put(at(500));
  pass('500');
  replace([at(3)], '100');
  assert.deepEqual([...entries()], [['a', '3']]);
});
