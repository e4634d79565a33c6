import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  AUDIT_STREAM,
  buildServiceEvent,
  type CloudEvent,
  cloudEventType,
  decodeAuditMessage,
  type EventType,
  encode,
  eventMsgId,
  eventSubject,
  serviceEventSubject,
  startCall,
  zCloudEvent,
} from '@colonnade/contracts';
import { createLogger } from '@colonnade/service-kit';
import { fromPlain } from '@colonnade/value';
import { startRealBus } from '../../../test/support/real-bus.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { createHookRunner, readHookRunnerConfig } from '../src/index.ts';
import type { HookEventName } from '../src/run/hook-events.ts';

export type PreparedRunner = Awaited<ReturnType<typeof prepareRunner>>;

/** A real bus and folders; `start` runs a hook-runner on them, in this process. */
export async function prepareRunner() {
  const stack = new AsyncDisposableStack();
  const dir = stack.use(await tempDir('runner')).path;
  const bus = stack.use(await startRealBus());
  const hooksDir = path.join(dir, 'hooks.d');
  const env: Record<string, string> = {
    PATH: process.env.PATH ?? '',
    HOOKS_DIR: hooksDir,
    HOOKS_STATE_DIR: path.join(dir, 'state'),
    HOOKS_GRACE_MS: '100',
    NATS_URL: bus.nats.url,
    NATS_NKEY_SEED: bus.nkeySeedOf('hook-runner'),
    OPS_HOST: '127.0.0.1',
    OPS_PORT: '0',
  };
  const api = await bus.as('pillar-api');
  const logLines: string[] = [];
  const destination = { write: (line: string) => void logLines.push(line) };
  const logger = createLogger({ service: 'hook-runner', level: 'debug', destination });
  let tick = 0;
  return {
    bus,
    api,
    dir,
    hooksDir,
    env,
    logLines,
    logged: (message: string) =>
      logLines
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter(({ msg }) => msg === message),
    async start(changes: Record<string, string> = {}) {
      const all = { ...env, ...changes };
      return stack.use(await createHookRunner(readHookRunnerConfig(all), { logger, env: all }));
    },
    /** A shell script for an event; `$OUT` is a file to write to. */
    async hook(event: HookEventName, name: string, script: string) {
      const file = path.join(hooksDir, event, name);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, `#!/bin/sh\nOUT=${dir}/out\n${script}\n`);
      await chmod(file, 0o755);
    },
    /** What the hooks wrote to `$OUT`, line by line. */
    out: async () => (await readFile(path.join(dir, 'out'), 'utf8').catch(() => '')).split('\n').slice(0, -1),
    async publish(type: EventType | string, subject: string, data: object): Promise<CloudEvent> {
      tick += 1;
      const event: CloudEvent = {
        specversion: '1.0',
        id: `i.${tick}.0`,
        source: 'urn:colonnade:estate',
        type: cloudEventType(type as EventType),
        subject,
        time: '2026-01-31T12:00:00.000Z',
        datacontenttype: 'application/json',
        clock: String(tick),
        incarnation: 'i',
        data: fromPlain(data),
      };
      const payload = encode(zCloudEvent, event);
      const message = { subject: eventSubject(type as EventType), msgId: eventMsgId(event), payload };
      const publisher = type.startsWith('key.') ? await bus.as('crypto-kms') : api;
      await publisher.publishDurable(message, startCall(5000));
      return event;
    },
    /** As pillar-api does for a service outside. */
    async publishOfService(service: string, type: string, data: object): Promise<CloudEvent> {
      tick += 1;
      const about = { id: `o-${tick}`, type, subject: `/orders/${tick}`, time: '2026-01-31T12:00:00.000Z' };
      const event = buildServiceEvent({ service, enrolment: 'e' }, { ...about, data: fromPlain(data) });
      const payload = encode(zCloudEvent, event);
      const message = { subject: serviceEventSubject(service, type), msgId: eventMsgId(event), payload };
      await api.publishDurable(message, startCall(5000));
      return event;
    },
    /** The records of hook-runner in AUDIT, as `hook status`. */
    async audited(): Promise<string[]> {
      const witness = await bus.witness();
      const info = await witness.request(`$JS.API.STREAM.INFO.${AUDIT_STREAM}`);
      const { first_seq, last_seq } = info.json<{ state: { first_seq: number; last_seq: number } }>().state;
      const found: string[] = [];
      for (let seq = Math.max(1, first_seq); seq <= last_seq; seq += 1) {
        const answer = await witness.request(
          `$JS.API.STREAM.MSG.GET.${AUDIT_STREAM}`,
          JSON.stringify({ seq }),
        );
        const bytes = Buffer.from(answer.json<{ message: { data: string } }>().message.data, 'base64');
        for (const { objectRef, annotations } of decodeAuditMessage(bytes)) {
          found.push(`${objectRef?.namespace} ${objectRef?.name} ${annotations?.['colonnade/hook-status']}`);
        }
      }
      await witness.close();
      return found;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
