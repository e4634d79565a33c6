import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createWholeness } from './whole.ts';

/** `b`: the beginning of an export, `o`: of one of version 1, a digit: an end with so many records, `.`: a record. */
function read(file: string): string {
  const whole = createWholeness();
  try {
    for (const one of file) {
      if (one === '.') whole.count();
      else if (one === 'b') whole.mark({ kind: 'estate', version: 2, clock: 7 });
      else if (one === 'o') whole.mark({ kind: 'estate', version: 1, clock: 7 });
      else whole.mark({ kind: 'estate', version: 2, records: Number(one) });
    }
    whole.end();
    return 'whole';
  } catch (thrown) {
    return (thrown as Error).message.split(';')[0] ?? '';
  }
}

describe('whether an export came whole', () => {
  const begins = 'an export begins before the one before it has ended';
  const cases: readonly (readonly [file: string, result: string])[] = [
    ['', 'whole'],
    ['...', 'whole'],
    ['o..', 'whole'],
    ['o..o', 'whole'],
    ['b0', 'whole'],
    ['b..2', 'whole'],
    ['.b..2', 'whole'],
    ['b..2b.1', 'whole'],
    ['b..2o', 'whole'],
    ['b', 'the file ends after 0 records, without the end of its export: it was cut'],
    ['b..', 'the file ends after 2 records, without the end of its export: it was cut'],
    ['b..2b.', 'the file ends after 1 records, without the end of its export: it was cut'],
    ['b.2', 'the export had 2 records, and here are 1'],
    ['b...2', 'the export had 2 records, and here are 3'],
    ['b..2.', 'it stands behind the end of the export'],
    ['..2', 'the end of an export whose beginning is not there'],
    ['b..22', 'the end of an export whose beginning is not there'],
    ['b.b.1', begins],
    ['b.o.1', begins],
  ];
  for (const [file, result] of cases) test(`"${file}": ${result}`, () => assert.equal(read(file), result));
});
