import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createUserNkey, readUserNkey, type UserNkey } from '@colonnade/bus';
import { BUS_USERS, type BusUser } from '@colonnade/contracts';

/** Paths of the secret files of one embedded installation, and what the starter itself needs of them. */
export type InstallationSecrets = {
  busNkeyFiles: Readonly<Record<BusUser, string>>;
  busNkeys: Readonly<Record<BusUser, UserNkey>>;
  redisMergerPasswordFile: string;
  redisMergerPassword: string;
  redisAdminPassword: string;
  kekFile: string;
  rootKeyFile: string;
  adminTokenFile: string;
  adminToken: string;
};

/**
 * Reads the secrets of an installation, making at first start what is missing: nkeys, passwords, a KEK and a root key of 32 bytes, the
 * first admin token. One file each, mode 0600, in a folder of mode 0700; what exists is never made again.
 */
export async function loadSecrets(dir: string): Promise<InstallationSecrets> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const password = () => randomBytes(24).toString('base64url');
  const one = async (name: string, make: () => string) => {
    const file = path.join(dir, name);
    if (!existsSync(file)) await writeSecret(file, make());
    return { file, text: (await readFile(file, 'utf8')).trimEnd() };
  };
  const nkeySeed = () => createUserNkey().seed;
  const bus = await Promise.all(
    BUS_USERS.map(async (u) => [u, await one(`nats-${u}.nk`, nkeySeed)] as const),
  );
  const redisMerger = await one('redis-pillar-merger', password);
  const redisAdmin = await one('redis-admin', password);
  const kek = await one('pillars-kek', () => randomBytes(32).toString('base64'));
  const rootKey = await one('kms-root-key', () => randomBytes(32).toString('base64'));
  const admin = await one('admin-token', newApiToken);
  return {
    busNkeyFiles: Object.fromEntries(bus.map(([u, s]) => [u, s.file])) as Record<BusUser, string>,
    busNkeys: Object.fromEntries(bus.map(([u, s]) => [u, readUserNkey(s.text)])) as Record<BusUser, UserNkey>,
    redisMergerPasswordFile: redisMerger.file,
    redisMergerPassword: redisMerger.text,
    redisAdminPassword: redisAdmin.text,
    kekFile: kek.file,
    rootKeyFile: rootKey.file,
    adminTokenFile: admin.file,
    adminToken: admin.text,
  };
}

/** An API token `col_<id>_<256 random bits>`. */
function newApiToken(): string {
  return `col_${randomBytes(8).toString('hex')}_${randomBytes(32).toString('base64url')}`;
}

/** Whole or not at all: a start that is cut off leaves no half secret behind. */
export async function writeSecret(file: string, text: string): Promise<void> {
  const draft = `${file}.${randomBytes(4).toString('hex')}`;
  await writeFile(draft, `${text}\n`, { mode: 0o600 });
  await rename(draft, file);
}
