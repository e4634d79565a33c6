import { setImmediate } from 'node:timers/promises';
import { TextDecoder } from 'node:util';
import { type BulkRecord, ColonnadeError, decodeTree, LIMITS, zBulkRecord } from '@colonnade/contracts';
import { parseValue, type Value, ValueError, valueFromSaltYaml } from '@colonnade/value';
import type { BulkFormat } from '../http/streamed-route.ts';

/** A record, or what is wrong with it; `line` is where it begins, from 1. */
export type ReadRecord = { line: number } & ({ record: BulkRecord } | { fault: ColonnadeError });

/** Reading for so long without a break would keep others waiting. Milliseconds. */
const TURN_MS = 10;

/**
 * Reads a stream of records, one at a time: YAML documents between `---`, or JSON texts, one to a line. A document may also be
 * a list of records. What is wrong with one record is given in its place, and the next is read.
 * @throws ColonnadeError `too_large` | `bad_request` (not UTF-8): the rest cannot be read
 */
export async function* readRecords(
  stream: AsyncIterable<Uint8Array>,
  format: BulkFormat,
): AsyncGenerator<ReadRecord> {
  let turnStartMs = performance.now();
  let count = 0;
  for await (const { text, line } of format === 'yaml' ? documentsOf(linesOf(stream)) : linesOf(stream)) {
    if (text.trim() === '') continue;
    for (const read of readText(text, line, format)) {
      count += 1;
      if (count > LIMITS.importRecords) throw tooLarge(`it has more than ${LIMITS.importRecords} records`);
      yield read;
    }
    if (performance.now() - turnStartMs < TURN_MS) continue;
    await setImmediate();
    turnStartMs = performance.now();
  }
}

type Piece = { text: string; line: number };

async function* linesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Piece> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let bytes = 0;
  let rest = '';
  let line = 1;
  for await (const chunk of stream) {
    bytes += chunk.byteLength;
    if (bytes > LIMITS.importBytes) throw tooLarge(`it has more than ${LIMITS.importBytes} bytes`);
    const lines = (rest + decode(decoder, line, chunk)).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LIMITS.importRecordBytes) throw recordTooLarge(line + lines.length);
    for (const text of lines) yield { text, line: line++ };
  }
  yield { text: rest + decode(decoder, line), line };
}

function decode(decoder: TextDecoder, line: number, chunk?: Uint8Array): string {
  try {
    return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
  } catch {
    throw new ColonnadeError('bad_request', `the body is not UTF-8 (in line ${line} or soon after it)`);
  }
}

/** A line that begins with `---` begins a document, whatever stands before it; YAML allows it nowhere else. */
async function* documentsOf(lines: AsyncIterable<Piece>): AsyncGenerator<Piece> {
  let document: string[] = [];
  let chars = 0;
  let first = 1;
  for await (const { text, line } of lines) {
    if (/^---(?:\s|$)/u.test(text) && document.length > 0) {
      // With its last line end: a text in block style may end in it.
      yield { text: `${document.join('\n')}\n`, line: first };
      document = [];
      chars = 0;
    }
    if (document.length === 0) first = line;
    document.push(text);
    chars += text.length + 1;
    if (chars > LIMITS.importRecordBytes) throw recordTooLarge(first);
  }
  yield { text: document.join('\n'), line: first };
}

function* readText(text: string, line: number, format: BulkFormat): Generator<ReadRecord> {
  let tree: Value;
  try {
    const limits = { maxDepth: LIMITS.messageDepth, maxBytes: LIMITS.importRecordBytes };
    tree = format === 'yaml' ? valueFromSaltYaml(text, limits) : parseValue(text, limits);
  } catch (thrown) {
    if (!(thrown instanceof ValueError)) throw thrown;
    const why = thrown.message.replace(/ \(line \d+, column \d+\)$/u, '');
    const place = `line ${line + (thrown.line ?? 1) - 1}, column ${thrown.column ?? 1}`;
    yield { line, fault: new ColonnadeError('bad_request', `not ${format} as read here, ${place}: ${why}`) };
    return;
  }
  // Of a YAML stream a document may be empty: comments before the first `---`.
  if (tree === null && format === 'yaml') return;
  for (const one of Array.isArray(tree) ? tree : [tree]) yield decodeRecord(one, line);
}

function decodeRecord(tree: Value, line: number): ReadRecord {
  try {
    return { line, record: decodeTree(zBulkRecord, tree) };
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError)) throw thrown;
    const { message, field } = thrown;
    return {
      line,
      fault: new ColonnadeError('unprocessable', message, field === undefined ? {} : { field }),
    };
  }
}

function recordTooLarge(line: number): ColonnadeError {
  return tooLarge(`the record in line ${line} has more than ${LIMITS.importRecordBytes} bytes`);
}

function tooLarge(why: string): ColonnadeError {
  return new ColonnadeError('too_large', `the import is too large: ${why}`);
}
