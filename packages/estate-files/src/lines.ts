import { type BulkRecord, encodeTree, zBulkRecord } from '@colonnade/contracts';
import { canonicalText } from '@colonnade/value';

/** The records as JSON texts, one to a line: the body of `POST /import`. @throws ColonnadeError `internal` for a record that is none */
export function* linesOf(records: Iterable<BulkRecord>): Generator<string> {
  for (const record of records) yield `${canonicalText(encodeTree(zBulkRecord, record))}\n`;
}
