import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fromPlain } from '@colonnade/value';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { natsForTests } from '../../support/servers.ts';
import { tempDir } from '../../support/temp.ts';
import type { Figure, Row } from '../figure.ts';
import { drive, interleave } from '../measure.ts';
import { startBenchStack } from '../parts/bench-stack.ts';

const FLOOR_IS = 'one bare SQLite transaction (WAL, FULL) and one bare JetStream publish, synced';

/** Writes over HTTP, each with its version, outbox row, event and audit records, until all of it is acknowledged. */
export const writes: Figure = {
  name: 'writes',
  about: 'pillars created over HTTP, beside a bare transaction and a bare publish',
  async measure({ repeats, trialMs }) {
    await using bench = await startBenchStack('sqlite');
    await using floor = await startWriteFloor();
    const create = () =>
      bench.api.call('POST', '/pillars', {
        ...(fromPlain({ tgt_type: 'root', name: `p_${randomUUID()}` }) as Record<string, string>),
        value: 'x'.repeat(200),
      });
    const rows: Row[] = [];
    for (const concurrency of [1, 64]) {
      const found = await interleave(repeats, {
        ours: () => drive({ concurrency, ms: trialMs }, create),
        floor: () => drive({ concurrency, ms: trialMs }, floor.write),
      });
      rows.push({
        ...{ what: `writes over HTTP, ${concurrency} at once`, unit: '/s', better: 'higher' },
        ...{ ours: found.ours.perSecond, floor: found.floor.perSecond, floorIs: FLOOR_IS },
      });
    }
    return rows;
  },
};

async function startWriteFloor() {
  const started = new AsyncDisposableStack();
  const dir = started.use(await tempDir('floor')).path;
  const nats = started.use(await natsForTests({ configText: 'jetstream { sync_interval: always }\n' }));
  const connection = await connect({ servers: nats.url });
  started.defer(() => connection.close());
  await (await jetstreamManager(connection)).streams.add({ name: 'FLOOR', subjects: ['floor'] });
  const database = new DatabaseSync(path.join(dir, 'floor.sqlite'));
  started.defer(() => database.close());
  database.exec(
    'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (id TEXT PRIMARY KEY, v TEXT)',
  );
  const insert = database.prepare('INSERT INTO t VALUES (?, ?)');
  const stream = jetstream(connection);
  const value = 'x'.repeat(200);
  return {
    async write(): Promise<void> {
      const id = randomUUID();
      insert.run(id, value);
      await stream.publish('floor', value, { msgID: id });
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
