import path from 'node:path';
import type { FileNames } from '@colonnade/audit-log';
import type { Bus } from '@colonnade/bus';
import { auditAnchorSubject, ColonnadeError, encode, startCall, zAuditAnchor } from '@colonnade/contracts';
import type { Events } from '../events.ts';
import type { LogFormat } from './format.ts';
import { removalEntry } from './open-log.ts';
import type { Persister } from './persister.ts';
import { type KeepOptions, pruneRotated, type Removal, removeDrafts } from './prune.ts';
import type { Writer } from './writer.ts';

/** What goes on beside the writing: rotated files are compressed and removed, the chain's head is anchored. */
export type Housekeeping = AsyncDisposable & {
  start(writer: Pick<Writer, 'place' | 'append'>): void;
  rotated(file: string): void;
};

const ANCHOR_BUDGET_MS = 3000;

export function createHousekeeping(options: {
  bus: Pick<Bus, 'publishDurable'>;
  names: FileNames;
  keep: KeepOptions;
  anchorMs: number;
  logName: string;
  format: LogFormat;
  events: Events;
  /** Lets one thing at a time happen to the log. */
  inTurn: Persister['inTurn'];
}): Housekeeping {
  const { bus, names, keep, events, logName, format, inTurn } = options;
  const stop = new AbortController();
  let anchored = '';
  let timer: NodeJS.Timeout | undefined;
  let writer: Pick<Writer, 'place' | 'append'> | undefined;
  let tidying: Promise<void> | undefined;
  let tidyAgain = false;

  /** The head goes where the host of the file cannot change it. */
  const anchor = async () => {
    const place = writer?.place();
    if (place === undefined || place.seq === 0 || place.head === anchored) return;
    try {
      const { stream, seq, head } = place;
      const content = {
        seq,
        stream_created: stream,
        chain: head,
        file: logName,
        time: new Date().toISOString(),
      };
      await bus.publishDurable(
        {
          subject: auditAnchorSubject('file'),
          msgId: `${stream}:${seq}:${head}`,
          payload: encode(zAuditAnchor, content),
          allowDuplicate: true,
        },
        startCall(ANCHOR_BUDGET_MS),
      );
      anchored = head;
    } catch (thrown) {
      events.anchorFailed(thrown);
    }
  };
  const record = async (removal: Removal) => {
    const open = writer;
    if (open === undefined) throw new ColonnadeError('unavailable', 'the log is not open');
    await inTurn(() => open.append([removalEntry(removal, open.place(), format)]));
  };
  const tidy = async () => {
    try {
      for (tidyAgain = true; tidyAgain && !stop.signal.aborted; ) {
        tidyAgain = false;
        events.removed(await pruneRotated(names, keep, Date.now(), stop.signal, record));
      }
    } catch (thrown) {
      events.pruneFailed(thrown);
    } finally {
      tidying = undefined;
    }
  };
  const tidySoon = () => {
    tidyAgain = true;
    tidying ??= tidy();
  };
  return {
    start(opened) {
      writer = opened;
      void removeDrafts(names).catch(events.pruneFailed).then(tidySoon);
      timer ??= setInterval(() => void anchor(), options.anchorMs);
    },
    rotated(file) {
      events.rotated(path.basename(file));
      tidySoon();
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      stop.abort();
      await tidying;
      await anchor();
    },
  };
}
