import { execFile } from 'node:child_process';
import { cpus, loadavg, release, totalmem, type } from 'node:os';
import process from 'node:process';
import { promisify } from 'node:util';
import { findForTests } from '../support/servers.ts';

const run = promisify(execFile);

export type Machine = Readonly<Record<string, string>>;

/** Where the figures are from: the machine, what else it was doing, and the versions that took part. */
export async function describeMachine(): Promise<Machine> {
  const [nats, redis] = [await findForTests('nats'), await findForTests('redis')];
  const commit = await run('git', ['rev-parse', '--short', 'HEAD']).then(
    ({ stdout }) => stdout.trim(),
    () => 'unknown',
  );
  return {
    cpu: `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown'}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    system: `${type()} ${release()}`,
    'load at start': loadavg()
      .map((load) => load.toFixed(1))
      .join(' '),
    node: process.versions.node,
    openssl: process.versions.openssl,
    'nats-server': nats.version,
    'redis-server': redis.version,
    commit,
    date: new Date().toISOString(),
  };
}
