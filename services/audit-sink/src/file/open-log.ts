import { microTime } from '@colonnade/audit';
import { type FileNames, removalUri } from '@colonnade/audit-log';
import type { ConsumerState } from '@colonnade/bus';
import { type AuditEvent, encodeText, zAuditEvent } from '@colonnade/contracts';
import type { Events } from '../events.ts';
import { type Gap, gapEvent } from '../gap.ts';
import type { Entry } from './chunk.ts';
import type { LogFormat } from './format.ts';
import { legacyLine } from './legacy.ts';
import { readLostLines } from './lost-lines.ts';
import type { Removal } from './prune.ts';
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
  return entryOf(gapEvent({ backend: 'file', ...gap }, at.stream, microTime()), at, format);
}

/** The line that says which rotated files the sink has removed: by it what is kept is known to be all. */
export function removalEntry(
  { keptFrom, from, to }: Removal,
  at: { seq: number; storedAtNs: bigint; stream: string },
  format: LogFormat,
): Entry {
  const gap = { backend: 'file', reason: 'removed_by_rotation', from, to, count: to - from + 1 } as const;
  const event = { ...gapEvent(gap, at.stream, microTime()), requestURI: removalUri(keptFrom) };
  return entryOf(event, at, format);
}

function entryOf(event: AuditEvent, at: { seq: number; storedAtNs: bigint }, format: LogFormat): Entry {
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
      const lost = await readLostLines(journal, size ?? 0);
      if (lost === undefined) return [];
      const gap = { reason: size === undefined ? 'file_gone' : 'file_shrank', ...lost } as const;
      events.gapWritten({ backend: 'file', ...gap });
      return [gapEntry(gap, writer.place(), format)];
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
  try {
    await say();
    if (found === 'shrunk' || found === 'moved') await writer.noteLoss();
    if (before.stream !== created) {
      await writer.startOver(base);
      await say();
    }
    return writer;
  } catch (thrown) {
    // It is opened anew at the next try.
    await writer.close();
    throw thrown;
  }
}
