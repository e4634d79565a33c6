import { startCall, type TlsReport, tlsStatus } from '@colonnade/contracts';
import { fromPlain } from '@colonnade/value';
import { EXIT } from '../../exit-codes.ts';
import { defineCommand } from '../../table/command.ts';
import type { Output } from '../../terminal/output.ts';

/** Status comes from the rotator's memory. */
const BUDGET_MS = 5000;

export const tlsStatusCommand = defineCommand({
  path: 'tls status',
  summary: 'show what tls-rotator says of every IngressTLS, or of one with its nodes',
  details:
    'As the NATS user "operator". Exit code 8 when one of them is not Ready, or nobody leads, so that nothing is done.',
  args: { name: { help: 'name of an IngressTLS', optional: true } },
  examples: [
    ['tls status', 'all of them, one line each'],
    ['tls status common-tls', 'one: conditions, counts, nodes'],
    ['colonnade tls status --json | jq .items[].targets', 'for a program'],
  ],
  async run(session, { args: { name } }) {
    await using inspector = await session.inspector();
    const found = await inspector.ask(tlsStatus, name === undefined ? {} : { name }, startCall(BUDGET_MS));
    const { leader, items } = found;
    const { out } = session;
    if (session.json) await out.json(fromPlain(found));
    else {
      const [only] = items;
      if (name !== undefined && only !== undefined) await showOne(out, only);
      else await showAll(out, items);
      if (leader === null) out.note('no tls-rotator leads: nothing is done');
    }
    return leader !== null && items.every(isReady) ? EXIT.ok : EXIT.differs;
  },
});

function readyOf({ conditions }: TlsReport) {
  return conditions.find(({ type }) => type === 'Ready');
}

function isReady(one: TlsReport): boolean {
  return readyOf(one)?.status === 'True' && one.observed_generation === one.generation;
}

function countsOf({ targets }: TlsReport): string {
  const told = Object.entries(targets).filter(([, count]) => count > 0);
  return told.map(([state, count]) => `${count} ${state}`).join(', ') || '-';
}

async function showAll(out: Output, items: readonly TlsReport[]): Promise<void> {
  const table = out.table<TlsReport>([
    { title: 'NAME', of: ({ name }) => name },
    { title: 'READY', of: (one) => readyOf(one)?.status ?? '-' },
    { title: 'REASON', of: (one) => readyOf(one)?.reason ?? 'not seen yet' },
    { title: 'EXPIRES', of: ({ source }) => source.not_after ?? '-' },
    { title: 'SECRETS', of: countsOf },
    { title: 'NODES', of: ({ nodes }) => nodesOf(nodes) },
    { title: 'MESSAGE', of: (one) => readyOf(one)?.message || '-' },
  ]);
  await table.add(items);
}

function nodesOf(nodes: TlsReport['nodes']): string {
  if (nodes.length === 0) return '-';
  return `${nodes.filter(({ phase }) => phase === 'Done' || phase === 'Pending').length}/${nodes.length}`;
}

async function showOne(out: Output, one: TlsReport): Promise<void> {
  const { source } = one;
  const seen = one.observed_generation === one.generation ? '' : ', of an earlier spec';
  await out.fields([
    ['name', one.name],
    ['source', `${source.namespace}/${source.name}`],
    ['fingerprint', source.fingerprint ?? '-'],
    ['expires', source.not_after ?? '-'],
    ['paused', one.paused ? 'yes' : 'no'],
    ...one.conditions.map(({ type, status, reason, message, since }) => {
      const why = message === '' ? reason : `${reason}: ${message}`;
      return [type, `${status} since ${since}${seen}, ${why}`] as const;
    }),
    ['secrets', countsOf(one)],
    ...one.failures.map(({ namespace, reason }) => [`  ${namespace}`, reason] as const),
    ['old CAs go', one.drop_old_at ?? '-'],
  ]);
  if (one.nodes.length === 0) return;
  await out.line('');
  const table = out.table<TlsReport['nodes'][number]>([
    { title: 'NODE', of: ({ name }) => name },
    { title: 'ADDRESS', of: ({ address }) => address },
    { title: 'PHASE', of: ({ phase }) => phase },
    { title: 'FINISHED', of: ({ finished_at }) => finished_at || '-' },
    { title: 'CA', of: ({ ca_hash }) => ca_hash.slice(0, 12) || '-' },
    { title: 'MESSAGE', of: ({ message }) => message || '-' },
  ]);
  await table.add(one.nodes);
}
