// The other half of the floor of a merge: takes requests from a Redis stream, asks over NATS, and puts the reply into Redis.
import process from 'node:process';
import { connect } from '@nats-io/transport-node';
import { Redis } from 'ioredis';

type Read = [stream: string, entries: [id: string, fields: string[]][]][] | null;

const { FLOOR_REDIS = '', FLOOR_NATS, FLOOR_ENVELOPES = '', FLOOR_REPLY_BYTES } = process.env;
const options = { protocol: 2, disableClientInfo: true } as const;
const reader = new Redis(FLOOR_REDIS, options);
const commands = new Redis(FLOOR_REDIS, { ...options, enableAutoPipelining: true });
const nats = await connect({ servers: FLOOR_NATS ?? '' });
const padding = 'x'.repeat(Number(FLOOR_REPLY_BYTES));

await commands.xgroup('CREATE', 'floor:req', 'floor', '0', 'MKSTREAM').catch(() => {});
process.stdout.write('ready\n');
for (;;) {
  const read = (await reader.xreadgroup(
    ...([
      'GROUP',
      'floor',
      String(process.pid),
      'COUNT',
      16,
      'BLOCK',
      500,
      'STREAMS',
      'floor:req',
      '>',
    ] as const),
  )) as Read;
  for (const [, entries] of read ?? []) for (const [id] of entries) void answer(id);
}

async function answer(id: string): Promise<void> {
  const message = await nats.request('floor.open', FLOOR_ENVELOPES, { timeout: 10_000 });
  const reply = JSON.stringify({ id, ok: true, pillar: { opened: message.json<string[]>(), padding } });
  const key = `floor:rep:${id}`;
  await Promise.all([
    commands.xack('floor:req', 'floor', id),
    commands.xdel('floor:req', id),
    commands.rpush(key, reply),
    commands.pexpire(key, 10_000),
  ]);
}
