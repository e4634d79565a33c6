import type { ConsumerLag, ServiceInstance, StreamFill } from '@colonnade/bus';
import { OPTIONAL_SERVICES, SERVICES } from '@colonnade/contracts';
import { fromPlain } from '@colonnade/value';
import { EXIT } from '../exit-codes.ts';
import { variable } from '../profile/settings.ts';
import { defineCommand } from '../table/command.ts';
import type { Output } from '../terminal/output.ts';

const MIB = 1024 * 1024;

export const status = defineCommand({
  path: 'status',
  summary: 'show all services, streams and readers, asked over NATS',
  details:
    'As the NATS user "operator": PING, INFO and STATS of every service, how full each stream is, how far each reader is behind. Exit code 8 when a service does not answer or nobody reads a stream. tls-rotator, which not every installation has, is only missed where --expect or COLONNADE_EXPECT names it. It needs COLONNADE_NATS_URL and COLONNADE_NATS_NKEY_FILE, or both in the profile; npm start writes them to .colonnade/data/cli.env, and the nkey to .colonnade/data/secrets/nats-operator.nk.',
  options: {
    expect: {
      help: 'a service that this installation has',
      value: 'SERVICE',
      choices: [...OPTIONAL_SERVICES],
      repeat: true,
    },
  },
  examples: [
    ['status', 'everything'],
    ['status --expect tls-rotator', 'where a Kubernetes cluster is rotated for'],
    ['colonnade status --json | jq .missing', 'for a program'],
  ],
  async run(session, { options }) {
    const expected = new Set([
      ...options.expect,
      ...(variable(session.env, 'COLONNADE_EXPECT') ?? '').split(/[ ,]+/u),
    ]);
    await using inspector = await session.inspector();
    const [services, streams, consumers] = await Promise.all([
      inspector.services(),
      inspector.streams(),
      inspector.consumers(),
    ]);
    const seen = new Set(services.map(({ name }) => name));
    const missing = [...SERVICES]
      .filter((name) => !seen.has(name) && (!OPTIONAL_SERVICES.has(name) || expected.has(name)))
      .sort();
    const unread = consumers
      .filter(({ readers }) => readers === 0)
      .map(({ stream, name }) => `${stream}/${name}`);
    if (session.json) {
      await session.out.json(fromPlain({ services, streams, consumers, missing, unread }));
    } else {
      await showServices(session.out, services);
      await showStreams(session.out, streams);
      await showConsumers(session.out, consumers);
      for (const name of missing) session.out.note(`${name} does not answer`);
      for (const name of unread) session.out.note(`nobody reads ${name}`);
    }
    return missing.length + unread.length === 0 ? EXIT.ok : EXIT.differs;
  },
});

async function showServices(out: Output, services: readonly ServiceInstance[]): Promise<void> {
  const table = out.table<ServiceInstance>([
    { title: 'SERVICE', of: (one) => one.name },
    { title: 'VERSION', of: (one) => one.version },
    { title: 'STARTED', of: (one) => one.started },
    { title: 'REQUESTS', of: (one) => String(one.requests), align: 'right' },
    { title: 'MEAN MS', of: (one) => meanOf(one).toFixed(1), align: 'right' },
    { title: 'PING MS', of: (one) => one.rttMs.toFixed(1), align: 'right' },
    { title: 'ID', of: (one) => one.id },
  ]);
  await table.add(services);
  await out.line('');
}

async function showStreams(out: Output, streams: readonly StreamFill[]): Promise<void> {
  const percent = ({ bytes, maxBytes }: StreamFill) =>
    maxBytes > 0 ? `${((100 * bytes) / maxBytes).toFixed(1)} %` : '-';
  const table = out.table<StreamFill>([
    { title: 'STREAM', of: (one) => one.name },
    { title: 'MESSAGES', of: (one) => String(one.messages), align: 'right' },
    { title: 'MIB', of: (one) => (one.bytes / MIB).toFixed(1), align: 'right' },
    {
      title: 'OF MIB',
      of: (one) => (one.maxBytes > 0 ? (one.maxBytes / MIB).toFixed(0) : '-'),
      align: 'right',
    },
    { title: 'FULL', of: percent, align: 'right' },
    { title: 'LAST', of: (one) => String(one.lastSeq), align: 'right' },
  ]);
  await table.add(streams);
  await out.line('');
}

async function showConsumers(out: Output, consumers: readonly ConsumerLag[]): Promise<void> {
  const table = out.table<ConsumerLag>([
    { title: 'READER', of: (one) => `${one.stream}/${one.name}` },
    { title: 'BEHIND', of: (one) => String(one.pending), align: 'right' },
    { title: 'UNDER WAY', of: (one) => String(one.unacknowledged), align: 'right' },
    { title: 'AGAIN', of: (one) => String(one.redelivered), align: 'right' },
    { title: 'READING', of: (one) => (one.readers > 0 ? 'yes' : 'no') },
  ]);
  await table.add(consumers);
}

function meanOf({ endpoints, requests }: ServiceInstance): number {
  if (requests === 0) return 0;
  return endpoints.reduce((sum, one) => sum + one.averageMs * one.requests, 0) / requests;
}
