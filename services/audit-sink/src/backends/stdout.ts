import { applyFilter, type EventFilter, readMessage } from '@colonnade/audit-log';
import { type Bus, type Delivery, DONE } from '@colonnade/bus';
import { auditFileConsumer } from '@colonnade/contracts';
import { createBury } from '../dead-letters.ts';
import type { Events } from '../events.ts';
import { type LogFormat, lineOf } from '../file/format.ts';
import type { Backend } from './backend.ts';

const NAME = 'file';
const LINE_END = Buffer.from('\n');

/**
 * Kubernetes' `--audit-log-path=-`: lines on standard output. It cannot be asked what it has, so a record that was
 * written but not acknowledged when the process was killed stands there twice.
 */
export function createStdoutBackend(
  options: { format: LogFormat; filter?: EventFilter | undefined },
  deps: { bus: Bus; events: Events; write?: (bytes: Uint8Array) => Promise<void> },
): Backend & { reopen(): Promise<void> } {
  const { bus, events, write = writeStdout } = deps;
  const bury = createBury(bus, NAME, events);
  let stream = '';
  return {
    name: NAME,
    consumer: auditFileConsumer,
    batch: () => ({ maxMessages: 1024, maxBytes: 8 * 1024 * 1024, waitMs: 2000, fillMs: 0 }),
    async run() {
      stream = (await bus.consumerState(auditFileConsumer)).stream.created;
    },
    async process(batch: readonly Delivery[]) {
      const lines: Uint8Array[] = [];
      for (const delivery of batch) {
        for (const [index, read] of readMessage(delivery.payload).entries()) {
          if (!read.ok) {
            const { reason, detail, bytes } = read;
            await bury({ ...delivery, payload: bytes }, { reason, detail, stream, index });
            continue;
          }
          const taken = applyFilter(read, options.filter);
          if (taken === undefined) events.counted(NAME, 'filtered', 1);
          else lines.push(lineOf(options.format, taken.bytes, taken.text, taken.event), LINE_END);
        }
      }
      await write(Buffer.concat(lines));
      events.counted(NAME, 'taken', lines.length / 2);
      return batch.map(() => DONE);
    },
    async shutdown() {},
    check() {},
    async reopen() {},
  };
}

function writeStdout(bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) =>
    process.stdout.write(bytes, (error) => (error ? reject(error) : resolve())),
  );
}
