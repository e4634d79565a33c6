import { BUS_USERS, type BusUser, busRights, LIMITS } from '@colonnade/contracts';

export type NatsConfigOptions = {
  /** A file of variables beside the configuration. */
  include?: string;
  host: string;
  /** -1: any free port. */
  port: number;
  /** Left out when the server is started with `--store_dir`. */
  storeDir?: string;
  /** Public key of each user's nkey (`U…`), or `$NAME` for a variable that an included file sets. */
  publicKeys: Readonly<Record<BusUser, string>>;
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
  const users = BUS_USERS.map((user) => renderUser(user, options.publicKeys[user])).join('\n');
  return `# Generated from packages/contracts/src/permissions.ts.
${options.include === undefined ? '' : `include ${quote(options.include)}\n`}host: ${quote(options.host)}
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

/** The configuration of infra/nats; `nkeys.conf` beside it, which `colonnade bus creds` writes, holds the public keys. */
export function renderProductionNatsConfig(): string {
  const publicKeys = Object.fromEntries(BUS_USERS.map((user) => [user, `$${variableOf(user)}`])) as Record<
    BusUser,
    string
  >;
  const gib = 1024 ** 3;
  return renderNatsConfig({
    include: NKEYS_FILE,
    host: '0.0.0.0',
    port: 4222,
    storeDir: '/var/lib/nats/jetstream',
    publicKeys,
    syncAlways: true,
    maxFileBytes: 16 * gib,
    tls: { certFile: '/etc/colonnade/nats/tls.crt', keyFile: '/etc/colonnade/nats/tls.key' },
  });
}

/** The text of `nkeys.conf`. Users without a key cannot connect: the server refuses a configuration that lacks one of them. */
export function publicKeysText(publicKeys: Readonly<Partial<Record<BusUser, string>>>): string {
  const lines = Object.entries(publicKeys).map(([user, key]) => `${variableOf(user)}: ${key}\n`);
  return `# Public keys of the NATS users, written by "colonnade bus creds".\n${lines.join('')}`;
}

const NKEYS_FILE = 'nkeys.conf';

function variableOf(user: string): string {
  return `NATS_NKEY_${user.toUpperCase().replaceAll('-', '_')}`;
}

function renderTls(tls: NatsConfigOptions['tls']): string {
  if (tls === undefined) return '';
  return `tls {
  cert_file: ${quote(tls.certFile)}
  key_file: ${quote(tls.keyFile)}
}
`;
}

function renderUser(user: BusUser, publicKey: string): string {
  const rights = busRights(user);
  const list = (subjects: readonly string[]) => subjects.map((s) => `\n            ${quote(s)}`).join('');
  return `      # ${user}
      {
        nkey: ${publicKey}
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
