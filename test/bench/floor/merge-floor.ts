import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type Child, startChild, waitReady } from '@colonnade/embedded/servers';
import { Redis } from 'ioredis';
import { natsForTests, redisForTests } from '../../support/servers.ts';
import { tempDir } from '../../support/temp.ts';
import { kekOf, makeEnvelope } from './envelope.ts';

export type MergeFloor = AsyncDisposable & { ask(): Promise<void> };

/** Bytes of a request on our bridge, its token included. */
const REQUEST_BYTES = 900;
const SECRETS = 5;

/**
 * The least that any merge over this bridge does: two processes, one Redis Streams echo, one NATS echo, five opens with
 * bare node:crypto. No rights, no checks, no store, no merge.
 */
export async function startMergeFloor(replyBytes: number): Promise<MergeFloor> {
  const started = new AsyncDisposableStack();
  try {
    const dir = started.use(await tempDir('floor')).path;
    const nats = started.use(await natsForTests({ configText: 'max_payload: 4194304\n' }));
    const redis = started.use(await redisForTests());
    const redisUrl = `redis://${redis.adminUser}:${redis.adminPassword}@${redis.host}:${redis.port}`;
    const kekText = randomBytes(32).toString('base64');
    const kek = kekOf(kekText);
    const envelopes = Array.from({ length: SECRETS }, (_, i) =>
      makeEnvelope(kek, `aad-${i}`, `"secret number ${i}"`),
    );
    const env = {
      ...{ FLOOR_NATS: nats.url, FLOOR_REDIS: redisUrl, FLOOR_KEK: kekText },
      ...{ FLOOR_ENVELOPES: JSON.stringify(envelopes), FLOOR_REPLY_BYTES: String(replyBytes) },
    };
    started.use(await startPart(dir, 'echo-kms', env));
    started.use(await startPart(dir, 'echo-merger', env));
    const open = () => {
      const one = new Redis(redisUrl, { protocol: 2, disableClientInfo: true });
      started.defer(() => one.disconnect());
      return one;
    };
    const commands = open();
    const idle: Redis[] = [];
    const request = 'x'.repeat(REQUEST_BYTES);
    return {
      async ask() {
        const id = await commands.xadd('floor:req', '*', 'data', request);
        const redis = idle.pop() ?? open();
        const popped = await redis.blpop(`floor:rep:${id}`, 10);
        idle.push(redis);
        if (JSON.parse(popped?.[1] ?? 'null')?.id !== id) throw new Error('the floor did not answer');
      },
      [Symbol.asyncDispose]: () => started.disposeAsync(),
    };
  } catch (error) {
    await started.disposeAsync();
    throw error;
  }
}

async function startPart(dir: string, name: string, env: Record<string, string>): Promise<Child> {
  const logFile = path.join(dir, `${name}.log`);
  const child = await startChild({
    command: process.execPath,
    args: [path.join(import.meta.dirname, `${name}.ts`)],
    logFile,
    env: { PATH: process.env.PATH ?? '', ...env },
  });
  await waitReady(name, child, logFile, async () =>
    (await readFile(logFile, 'utf8')).includes('ready') ? true : undefined,
  );
  return child;
}
