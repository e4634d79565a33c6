import { BUS_USERS, type BusUser, busRights, LIMITS } from '@colonnade/contracts';

export type NatsConfigOptions = {
  host: string;
  /** -1: any free port. */
  port: number;
  /** Left out when the server is started with `--store_dir`. */
  storeDir?: string;
  /** Plain, bcrypt, or `$NAME` for an environment variable of the server. */
  passwords: Readonly<Record<BusUser, string>>;
  /** `sync_interval: always`: an acknowledged message survives a power cut of a single server. */
  syncAlways: boolean;
  /** Paths of the server's certificate and key. Without them everything, opened secrets included, crosses in clear. */
  tls?: { certFile: string; keyFile: string };
  /** Bytes JetStream may use on disk; at least the sum of both streams' reservations. */
  maxFileBytes: number;
};

/**
 * The configuration of a nats-server with every user and exactly its rights. No `allow_responses`, no anonymous user,
 * no default permissions: a user who is not here cannot connect, a subject that is not here cannot be used.
 */
export function renderNatsConfig(options: NatsConfigOptions): string {
  const users = BUS_USERS.map((user) => renderUser(user, options.passwords[user])).join('\n');
  return `# Generated from packages/contracts/src/permissions.ts.
host: ${quote(options.host)}
port: ${options.port}
server_name: "colonnade"
max_payload: ${LIMITS.natsPayloadBytes}
max_pending: ${16 * LIMITS.natsPayloadBytes}
${renderTls(options.tls)}jetstream {${options.storeDir === undefined ? '' : `\n  store_dir: ${quote(options.storeDir)}`}
  max_file_store: ${options.maxFileBytes}
  max_memory_store: 67108864${options.syncAlways ? '\n  sync_interval: always' : ''}
}
accounts {
  COLONNADE {
    jetstream: enabled
    users: [
${users}
    ]
  }
}
`;
}

/** The configuration of infra/nats: passwords from the server's environment, `NATS_PASSWORD_PILLAR_API` and so on. */
export function renderProductionNatsConfig(): string {
  const passwords = Object.fromEntries(
    BUS_USERS.map((user) => [user, `$NATS_PASSWORD_${user.toUpperCase().replaceAll('-', '_')}`]),
  ) as Record<BusUser, string>;
  const gib = 1024 ** 3;
  return renderNatsConfig({
    host: '0.0.0.0',
    port: 4222,
    storeDir: '/var/lib/nats/jetstream',
    passwords,
    syncAlways: true,
    maxFileBytes: 16 * gib,
    tls: { certFile: '/etc/colonnade/nats/tls.crt', keyFile: '/etc/colonnade/nats/tls.key' },
  });
}

function renderTls(tls: NatsConfigOptions['tls']): string {
  if (tls === undefined) return '';
  return `tls {
  cert_file: ${quote(tls.certFile)}
  key_file: ${quote(tls.keyFile)}
}
`;
}

function renderUser(user: BusUser, password: string): string {
  const rights = busRights(user);
  const list = (subjects: readonly string[]) => subjects.map((s) => `\n            ${quote(s)}`).join('');
  const secret = password.startsWith('$') && !password.startsWith('$2') ? password : quote(password);
  return `      {
        user: ${quote(user)}
        password: ${secret}
        permissions {
          publish { allow: [${list(rights.publish)}
          ] }
          subscribe { allow: [${list(rights.subscribe)}
          ] }
        }
      }`;
}

function quote(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}
