import { Readable } from 'node:stream';
import type { Bus } from '@colonnade/bus';
import {
  AUDIT_STREAM,
  type AuditEvent,
  ColonnadeError,
  decodeAuditMessage,
  encodeText,
  PROBLEM_MEDIA_TYPE,
  secretField,
  secretIfMarked,
  zProblem,
  zValue,
} from '@colonnade/contracts';
import { parseValue, type Value } from '@colonnade/value';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import { z } from 'zod';
import { type RealBus, startRealBus } from '../../../test/support/real-bus.ts';
import type { AuditWatch } from '../src/event/watch.ts';
import {
  type AuditMode,
  type AuditPlugin,
  auditPlugin,
  compilePolicy,
  createAuditor,
  DEFAULT_POLICY,
  loadPolicy,
  type PolicyEvaluator,
} from '../src/index.ts';

export type Told = { what: keyof AuditWatch; fields: object };

/** Keeps everything it is told. */
export function tellingWatch(): { watch: AuditWatch; told: Told[] } {
  const told: Told[] = [];
  const names = [
    'stored',
    'storedInBatch',
    'failed',
    'dropped',
    'waiting',
    'rejected',
    'policyLoaded',
    'policyRefused',
  ];
  const watch = Object.fromEntries(
    names.map((what) => [
      what,
      (fields: object) => void told.push({ what: what as keyof AuditWatch, fields }),
    ]),
  );
  return { watch: watch as unknown as AuditWatch, told };
}

/** Every record that is stored now, in the order of the stream. */
export async function readRecords(bus: RealBus): Promise<AuditEvent[]> {
  return (await readMessages(bus)).flatMap((message) => [...decodeAuditMessage(message)]);
}

export async function readMessages(bus: RealBus): Promise<Uint8Array[]> {
  const witness = await bus.witness();
  const info = await witness.request(`$JS.API.STREAM.INFO.${AUDIT_STREAM}`);
  const { messages } = info.json<{ state: { messages: number } }>().state;
  const found: Uint8Array[] = [];
  for (let seq = 1; seq <= messages; seq += 1) {
    const answer = await witness.request(`$JS.API.STREAM.MSG.GET.${AUDIT_STREAM}`, JSON.stringify({ seq }));
    found.push(Buffer.from(answer.json<{ message: { data: string } }>().message.data, 'base64'));
  }
  await witness.close();
  return found;
}

/** Takes the stream away: the server is there, and stores nothing. */
export async function removeStream(bus: RealBus): Promise<void> {
  const witness = await bus.witness();
  await witness.request(`$JS.API.STREAM.DELETE.${AUDIT_STREAM}`);
  await witness.close();
}

export async function restoreStream(bus: RealBus): Promise<void> {
  const provisioner = await bus.as('provisioner');
  const size = 16 * 1024 * 1024;
  await provisioner.provisionStreams({ maxEventsBytes: size, maxAuditBytes: size, replicas: 1 });
}

export const zThing = z.strictObject({
  name: z.string(),
  value: secretField(zValue, secretIfMarked),
  is_secret: z.boolean().optional(),
});

export function policyOf(...rules: string[]): PolicyEvaluator {
  const text = ['apiVersion: audit.k8s.io/v1', 'kind: Policy', 'rules:', ...rules].join('\n');
  return compilePolicy(loadPolicy(text, { strict: true }).policy);
}

export type TestApp = AsyncDisposable & { url: string; told: Told[]; plugin: AuditPlugin };

export type TestAppOptions = {
  bus: Pick<Bus, 'publishDurable' | 'isConnected'>;
  policy?: PolicyEvaluator;
  mode?: AuditMode;
  trustProxy?: string;
  addRoutes: (app: FastifyInstance) => void;
};

/** A real Fastify with the plugin, errors as problem documents, and a strict JSON parser. */
export async function startApp(options: TestAppOptions): Promise<TestApp> {
  const { watch, told } = tellingWatch();
  const policy = options.policy ?? compilePolicy(DEFAULT_POLICY);
  const plugin = auditPlugin({
    auditor: createAuditor({ bus: options.bus, service: 'pillar-api', policy, watch }),
    watch,
    mode: options.mode,
    userOf: (request) => ({ username: String(request.headers['x-user'] ?? 'alice'), groups: ['admin'] }),
    bodyOf: ({ body }) => (body instanceof Readable ? undefined : (body as Value | undefined)),
    outcomeOf: (request) => ({ reason: request.headers['x-reason'] as string }),
    isUnrecorded: (_, reply) => reply.statusCode === 429,
    writeError: (reply, error, request) => writeProblem(reply, error, request.id),
  });
  const app = fastify({
    http: { maxHeaderSize: 32 * 1024 * 1024 },
    bodyLimit: 8_000_000,
    trustProxy: options.trustProxy ?? false,
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (_request: unknown, body: Buffer) => parseValue(body),
  );
  plugin.register(app);
  app.addHook('onRequest', async (request) => {
    const code = request.headers['x-deny'];
    if (code === 'forbidden' || code === 'rate_limited') throw new ColonnadeError(code, 'denied');
  });
  app.setErrorHandler(
    plugin.errorHandler((error: Error, request, reply) => {
      if (error.message === 'past the error handler') throw new Error('the error handler fails as well');
      const known = error instanceof ColonnadeError ? error : new ColonnadeError('internal', 'a fault');
      return reply.send(writeProblem(reply, known, request.id));
    }),
  );
  options.addRoutes(app);
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  return {
    url,
    told,
    plugin,
    async [Symbol.asyncDispose]() {
      await app.close();
      await plugin[Symbol.asyncDispose]();
    },
  };
}

const STATUS: Readonly<Record<string, number>> = { forbidden: 403, rate_limited: 429 };

function writeProblem(reply: FastifyReply, error: ColonnadeError, instance: string): string {
  const status = STATUS[error.code] ?? 500;
  reply.code(status).header('content-type', PROBLEM_MEDIA_TYPE);
  return encodeText(zProblem, {
    ...{ type: 'urn:test', title: error.code, status, detail: error.message, code: error.code },
    instance,
  });
}

export { type RealBus, startRealBus };
