import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { BUS_USERS, type BusUser } from '@colonnade/contracts';
import { fromPlain } from '@colonnade/value';
import { usageError } from '../../exit-codes.ts';
import { readPrivate } from '../../profile/config-file.ts';
import { defineCommand } from '../../table/command.ts';

type Creds = { user: BusUser; file: string; publicKey: string; made: boolean };

export const busCreds = defineCommand({
  path: 'bus creds',
  summary: "make the NATS users' nkeys, and the file that tells nats-server their public halves",
  details: `Writes USER.nk (0600, the secret seed) for each user that has none in the folder, and nkeys.conf, which infra/nats/colonnade.conf includes. What is there is kept; with --new it is made again: give the service its new file, let nats-server read its configuration anew (SIGHUP), restart the service. Users: ${BUS_USERS.join(', ')}.`,
  args: { user: { help: 'a NATS user; all of them when none is named', optional: true, repeat: true } },
  options: {
    dir: { value: 'DIR', required: true, help: 'folder of the nkeys; made with mode 0700' },
    new: { help: 'make the named users new nkeys, though they have one' },
  },
  examples: [
    ['bus creds --dir nats', 'everything a new installation needs'],
    ['bus creds hook-runner --new --dir nats', 'a stolen seed is worth nothing from then on'],
  ],
  async run({ out, json }, { args, options }) {
    const { publicKeysText } = await import('@colonnade/bus');
    const named = usersOf(args.user);
    if (options.new && named.length === 0) throw usageError('--new: name the users that get another nkey');
    const dir = path.resolve(options.dir);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const wanted = named.length > 0 ? named : BUS_USERS;
    const creds: Creds[] = [];
    for (const user of wanted) creds.push(await credsOf(user, dir, options.new));
    const file = path.join(dir, 'nkeys.conf');
    await replaceFile(file, publicKeysText(await knownKeys(dir)), 0o644);
    if (json) {
      const users = creds.map(({ publicKey, ...one }) => ({ ...one, public_key: publicKey }));
      return await out.json(fromPlain({ users, nkeys_conf: file }));
    }
    const table = out.table<Creds>([
      { title: 'USER', of: ({ user }) => user },
      { title: 'PUBLIC KEY', of: ({ publicKey }) => publicKey },
      { title: 'SEED', of: (one) => one.file },
      { title: 'MADE', of: ({ made }) => (made ? 'now' : 'before') },
    ]);
    await table.add(creds);
    out.note(`public keys for nats-server: ${file}`);
  },
});

function usersOf(names: readonly string[]): BusUser[] {
  for (const name of names) {
    if (!(BUS_USERS as readonly string[]).includes(name))
      throw usageError(`"${name}" is no NATS user; there are ${BUS_USERS.join(', ')}`);
  }
  return [...new Set(names)] as BusUser[];
}

async function credsOf(user: BusUser, dir: string, anew: boolean): Promise<Creds> {
  const { createUserNkey, readUserNkey } = await import('@colonnade/bus');
  const file = path.join(dir, `${user}.nk`);
  const kept = readPrivate(file, 'the nkey file')?.trim();
  if (kept !== undefined && !anew)
    return { user, file, publicKey: readUserNkey(kept).publicKey, made: false };
  const { seed, publicKey } = createUserNkey();
  await replaceFile(file, `${seed}\n`, 0o600);
  return { user, file, publicKey, made: true };
}

/** Of every user whose seed lies in the folder. */
async function knownKeys(dir: string): Promise<Partial<Record<BusUser, string>>> {
  const { readUserNkey } = await import('@colonnade/bus');
  const files = new Set(await readdir(dir));
  const known: Partial<Record<BusUser, string>> = {};
  for (const user of BUS_USERS.filter((one) => files.has(`${one}.nk`))) {
    const seed = readPrivate(path.join(dir, `${user}.nk`), 'the nkey file') ?? '';
    known[user] = readUserNkey(seed.trim()).publicKey;
  }
  return known;
}

/** Whole or not at all. */
async function replaceFile(file: string, text: string, mode: number): Promise<void> {
  const draft = `${file}.${process.pid}`;
  try {
    await writeFile(draft, text, { mode, flag: 'wx' });
    await rename(draft, file);
  } finally {
    await rm(draft, { force: true });
  }
}
