import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { MongoClient, MongoClientOptions } from 'mongodb';
import type { MongoOptions } from './options.ts';

type Material = { ca: Buffer[]; cert: Buffer[]; key: Buffer[] };
type TlsFiles = NonNullable<MongoOptions['tls']>;

/**
 * The CA and the certificate of a client as lists that the driver hands to each new connection as they are then. So they can be
 * replaced while it runs: files are read again when they have changed.
 * @throws Error when a file is missing or holds no certificate
 */
export function readTlsFiles(files: TlsFiles): {
  options: MongoClientOptions;
  /** Looks at the files before each connection of this client. One that cannot be used leaves everything as it was. */
  follow(client: MongoClient): void;
} {
  const lists: Material = { ca: [], cert: [], key: [] };
  let seen = stampOf(files);
  fill(lists, read(files));
  const refresh = () => {
    try {
      const stamp = stampOf(files);
      if (stamp === seen) return;
      fill(lists, read(files));
      seen = stamp;
    } catch {
      // It is being replaced, or is no certificate: the next connection looks again.
    }
  };
  return {
    options: {
      ...(files.caFile === undefined ? {} : { ca: lists.ca }),
      ...(files.certificateKeyFile === undefined ? {} : { cert: lists.cert, key: lists.key }),
    },
    follow(client) {
      // Those that look how a server does tell of it by a heartbeat, all others by themselves.
      client.on('serverHeartbeatStarted', refresh);
      client.on('connectionCreated', refresh);
    },
  };
}

function read({ caFile, certificateKeyFile }: TlsFiles): Material {
  const [ca, pair] = [caFile, certificateKeyFile].map((file) =>
    file === undefined ? [] : [readFileSync(file)],
  ) as [Buffer[], Buffer[]];
  for (const pem of ca) checkAuthorities(pem.toString('latin1'));
  // Throws for what is no certificate, or a key that is another's.
  createSecureContext({ cert: pair, key: pair });
  return { ca, cert: pair, key: pair };
}

/** Node.js takes whatever is no certificate for an empty list, and trusts nobody then. @throws Error */
function checkAuthorities(pem: string): void {
  const begun = pem.match(/-----BEGIN [A-Z0-9 ]*CERTIFICATE-----/gu) ?? [];
  const whole =
    pem.match(/-----BEGIN [A-Z0-9 ]*CERTIFICATE-----.*?-----END [A-Z0-9 ]*CERTIFICATE-----/gsu) ?? [];
  if (whole.length === 0 || whole.length < begun.length) throw new Error('no certificate, or a part of one');
  for (const one of whole) new X509Certificate(one);
}

function fill(lists: Material, now: Material): void {
  for (const name of ['ca', 'cert', 'key'] as const) lists[name].splice(0, lists[name].length, ...now[name]);
}

/** Another one when a file was written or replaced. */
function stampOf({ caFile, certificateKeyFile }: TlsFiles): string {
  const stamps = [caFile, certificateKeyFile].map((file) => {
    if (file === undefined) return '';
    const { ino, size, mtimeNs } = statSync(file, { bigint: true });
    return `${ino} ${size} ${mtimeNs}`;
  });
  return stamps.join(', ');
}
