import { createHash } from 'node:crypto';
import { ColonnadeError, LIMITS } from '@colonnade/contracts';

export type RedisConfig = {
  dir: string;
  aclFile: string;
  port: number;
  unixSocket?: string | undefined;
  maxMemoryMb: number;
  /** More lines of redis.conf, such as TLS. */
  extra: string;
};

/**
 * The bridge's Redis: it holds plaintext for moments, so nothing of it may reach a disk.
 * That includes snapshots, append-only files, replication files, crash logs, and the slow log's arguments.
 */
export function redisConfigText({ dir, aclFile, port, unixSocket, maxMemoryMb, extra }: RedisConfig): string {
  const lines = [
    'bind 127.0.0.1',
    `port ${port}`,
    ...(unixSocket ? [`unixsocket ${quote(unixSocket)}`, 'unixsocketperm 700'] : []),
    `dir ${quote(dir)}`,
    `aclfile ${quote(aclFile)}`,
    'daemonize no',
    'save ""',
    'appendonly no',
    'shutdown-on-sigterm nosave',
    'shutdown-on-sigint nosave',
    'repl-diskless-sync yes',
    'repl-diskless-load on-empty-db',
    'crash-log-enabled no',
    'crash-memcheck-enabled no',
    'slowlog-log-slower-than -1',
    // What one client may make this server, and mergers, hold: packages/contracts/src/limits.ts has the sums.
    `proto-max-bulk-len ${LIMITS.redisBulkBytes}`,
    `client-query-buffer-limit ${LIMITS.redisQueryBufferBytes}`,
    `maxmemory-clients ${LIMITS.redisClientsBytes}`,
    `maxmemory ${maxMemoryMb}mb`,
    'maxmemory-policy noeviction',
    extra,
    // The launcher reads in the log when it is ready.
    'loglevel notice',
  ];
  return `${lines.join('\n')}\n`;
}

/**
 * The ACL file: nobody without a name, one administrator, and the users given. It holds no password, only hashes.
 * @throws ColonnadeError `bad_request` for a line that is more than one
 */
export function redisAclText(adminUser: string, adminPassword: string, users: readonly string[]): string {
  const hash = createHash('sha256').update(adminPassword).digest('hex');
  if (users.some((line) => /[\r\n]/.test(line))) {
    throw new ColonnadeError('bad_request', 'a Redis ACL rule is one line');
  }
  const lines = ['user default off', `user ${adminUser} on #${hash} ~* &* +@all`, ...users];
  return `${lines.join('\n')}\n`;
}

function quote(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}
