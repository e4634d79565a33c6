import { microTime } from '@colonnade/audit';
import type { FileNames } from '@colonnade/audit-log';
import type { ConsumerState } from '@colonnade/bus';
import { encodeText, zAuditEvent } from '@colonnade/contracts';
import type { Events } from '../events.ts';
import { type Gap, gapEvent } from '../gap.ts';
import type { Entry } from './chunk.ts';
import type { LogFormat } from './format.ts';
import { legacyLine } from './legacy.ts';
import { readLostLines } from './lost-lines.ts';
import { recover } from './recover.ts';
import { findUnsaid } from './unsaid.ts';
import { createWriter, type Writer } from './writer.ts';

export type OpenLogOptions = {
  path: string;
  names: FileNames;
  format: LogFormat;
  maxBytes: number;
  sync: boolean;
  onRotated: (file: string) => void;
};

/** The line of a gap in the file, at its place in the stream. */
export function gapEntry(
  gap: Omit<Gap, 'backend'>,
  at: { seq: number; storedAtNs: bigint; stream: string },
  format: LogFormat,
): Entry {
  const event = gapEvent({ backend: 'file', ...gap }, at.stream, microTime());
  const line = format === 'legacy' ? legacyLine(event) : encodeText(zAuditEvent, event);
  return { kind: 'g', seq: at.seq, storedAtNs: at.storedAtNs, lines: [Buffer.from(line)] };
}

/**
 * Opens the log where the last writer left it and writes down what is missing: what was acknowledged before this file began, and
 * that the stream or its numbers are other ones than before, also where the last writer was killed before it could.
 * @throws what the file system throws
 */
export async function openLog(
  options: OpenLogOptions,
  state: ConsumerState,
  events: Events,
): Promise<Writer> {
  const { path, names, format } = options;
  const { created, firstSeq } = state.stream;
  const storedAtNs = BigInt(Date.now()) * 1_000_000n;
  const base = { stream: created, seq: Math.max(state.ackedSeq, firstSeq - 1, 0), storedAtNs };
  const { files, found } = await recover(path, names, base);
  const writer = createWriter(files, {
    ...options,
    onReplaced: events.replaced,
    describeLoss: async (journal, size) => {
      const lost = await readLostLines(journal, size);
      return lost === undefined ? [] : [gapEntry({ reason: 'file_shrank', ...lost }, writer.place(), format)];
    },
  });
  const before = writer.place();
  events.becameWriter(path, found, before.seq);
  const say = async () => {
    const gap = await findUnsaid(names, writer.place());
    if (gap === undefined) return;
    await writer.append([gapEntry(gap, { ...base, seq: writer.place().seq }, format)]);
    events.gapWritten({ backend: 'file', ...gap });
  };
  await say();
  if (found === 'shrunk') await writer.noteLoss();
  if (before.stream !== created) {
    await writer.startOver(base);
    await say();
  }
  return writer;
}
