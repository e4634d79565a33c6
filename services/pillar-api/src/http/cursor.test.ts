import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import fc from 'fast-check';
import { cutPage, pageOptions, readCursor, writeCursor } from './cursor.ts';

test('a cursor comes back as it was given out', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (key) => readCursor(writeCursor(key) ?? undefined) === key),
  );
});

test('what is no cursor is refused', () => {
  const cursor = writeCursor('m1/web-1') ?? '';
  for (const bad of [
    'x',
    `${cursor}=`,
    `${cursor} `,
    Buffer.from('c2:a').toString('base64url'),
    cursor.slice(1),
  ]) {
    assert.throws(
      () => readCursor(bad),
      (thrown) => thrown instanceof ColonnadeError && thrown.field === 'cursor',
      bad,
    );
  }
});

test('the pages of a list that changes show every row that stays once', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string(), { minLength: 1 }),
      fc.integer({ min: 1, max: 5 }),
      fc.nat(),
      (keys, limit, at) => {
        const dropped = keys[at % keys.length];
        const seen: string[] = [];
        let cursor: string | null = null;
        let pages = 0;
        do {
          const options = pageOptions({ limit, ...(cursor === null ? {} : { cursor }) });
          const present = pages === 0 ? keys : keys.filter((key) => key !== dropped);
          const { rows, next } = cutPage(present, options, (key) => key);
          seen.push(...rows);
          cursor = writeCursor(next);
          pages += 1;
        } while (cursor !== null);
        assert.deepEqual([...new Set(seen)], seen);
        for (const key of keys) if (key !== dropped) assert.ok(seen.includes(key));
      },
    ),
  );
});
