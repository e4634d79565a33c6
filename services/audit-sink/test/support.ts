import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Bus } from '@colonnade/bus';
import {
  AUDIT_ANCHOR_STREAM,
  AUDIT_DEAD_STREAM,
  type AuditEvent,
  auditSubject,
  type BusUser,
  decode,
  encode,
  startCall,
  zAuditAnchor,
  zAuditEvent,
  zAuditEventList,
  zDeadLetter,
} from '@colonnade/contracts';
import { createLogger } from '@colonnade/service-kit';
import { type RealBus, type RealBusOptions, startRealBus } from '../../../test/support/real-bus.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { createAuditSink, readAuditSinkConfig } from '../src/index.ts';

export type PreparedSink = Awaited<ReturnType<typeof prepareSink>>;

/** A real bus and a folder; `start` runs a sink on them, in this process. */
export async function prepareSink(options: RealBusOptions = {}) {
  const stack = new AsyncDisposableStack();
  const dir = stack.use(await tempDir('sink'));
  const bus = stack.use(await startRealBus(options));
  const logPath = path.join(dir.path, 'audit', 'audit.log');
  const env: Record<string, string> = {
    AUDIT_LOG_PATH: logPath,
    NATS_URL: bus.nats.url,
    NATS_NKEY_SEED: bus.nkeySeedOf('audit-sink'),
    OPS_PORT: '0',
  };
  const logLines: string[] = [];
  const destination = { write: (line: string) => void logLines.push(line) };
  const logger = createLogger({ service: 'audit-sink', level: 'debug', destination });
  return {
    bus,
    dir: dir.path,
    logPath,
    env,
    logLines,
    /** A publisher such as pillar-api. */
    publisher: await bus.as('pillar-api'),
    deadLetters: async () => (await readStream(bus, AUDIT_DEAD_STREAM)).map((m) => decode(zDeadLetter, m)),
    anchors: async () => (await readStream(bus, AUDIT_ANCHOR_STREAM)).map((m) => decode(zAuditAnchor, m)),
    async start(changes: Record<string, string | undefined> = {}) {
      const config = readAuditSinkConfig({ ...env, ...changes });
      return stack.use(await createAuditSink(config, { logger }));
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Every message of a stream that is still there. */
export async function readStream(bus: RealBus, stream: string): Promise<Buffer[]> {
  const witness = await bus.witness();
  const info = await witness.request(`$JS.API.STREAM.INFO.${stream}`);
  const { first_seq, last_seq } = info.json<{ state: { first_seq: number; last_seq: number } }>().state;
  const messages: Buffer[] = [];
  for (let seq = Math.max(first_seq, 1); seq <= last_seq; seq += 1) {
    const answer = await witness.request(`$JS.API.STREAM.MSG.GET.${stream}`, JSON.stringify({ seq }));
    messages.push(Buffer.from(answer.json<{ message: { data: string } }>().message.data, 'base64'));
  }
  await witness.close();
  return messages;
}

/** An event whose id is its number, so that a reader can tell which are there. */
export function eventOf(id: string, changes: Partial<AuditEvent> = {}): AuditEvent {
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: id,
    stage: 'ResponseComplete',
    requestURI: `/pillars/${id}`,
    verb: 'get',
    user: { username: 'alice', groups: ['operators'] },
    requestReceivedTimestamp: '2026-01-31T12:00:00.000100Z',
    stageTimestamp: '2026-01-31T12:00:00.000200Z',
    ...changes,
  };
}

/** Stores a record as a service does; returns when the stream has acknowledged it. */
export async function publish(
  bus: Bus,
  payload: Uint8Array | AuditEvent,
  as: BusUser = 'pillar-api',
): Promise<number> {
  const bytes = payload instanceof Uint8Array ? payload : encode(zAuditEvent, payload);
  const ack = await bus.publishDurable(
    { subject: auditSubject(as), msgId: randomUUID(), payload: bytes },
    startCall(5000),
  );
  return ack.seq;
}

/** Stores several records in one message, as services do with those they need not wait for. */
export async function publishList(bus: Bus, events: readonly AuditEvent[]): Promise<number> {
  const items = [...events];
  return publish(bus, encode(zAuditEventList, { kind: 'EventList', apiVersion: 'audit.k8s.io/v1', items }));
}

/** Stores `count` events, a few at once, and gives their ids. */
export async function publishMany(bus: Bus, prefix: string, count: number, more = ''): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
  for (let i = 0; i < count; i += 64) {
    const part = ids.slice(i, i + 64);
    await Promise.all(part.map((id) => publish(bus, eventOf(id, more ? { userAgent: more } : {}))));
  }
  return ids;
}

/** Every line of the log and of its rotated and compressed files, oldest first. */
export async function readLines(logPath: string, extra: readonly string[] = []): Promise<string[]> {
  const dir = path.dirname(logPath);
  const names = await readdir(dir).catch((): string[] => []);
  // While one is compressed, both are there.
  const whole = names.filter((n) => !n.endsWith('.gz') || !names.includes(n.slice(0, -'.gz'.length)));
  const rotated = whole.filter((n) => /^audit-.*\.log(\.gz)?$/u.test(n)).sort();
  const files = [...extra, ...rotated.map((n) => path.join(dir, n)), logPath];
  const lines: string[] = [];
  for (const file of files) {
    const bytes = await readFile(file).catch(() => Buffer.alloc(0));
    const text = (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
    if (text !== '' && !text.endsWith('\n')) throw new Error(`${file} ends in a torn line`);
    lines.push(...text.split('\n').slice(0, -1));
  }
  return lines;
}

/** The ids of the events in the log, in its order. */
export async function readIds(logPath: string, extra: readonly string[] = []): Promise<string[]> {
  const lines = await readLines(logPath, extra);
  return lines.map((line) => (JSON.parse(line) as { auditID: string }).auditID);
}
