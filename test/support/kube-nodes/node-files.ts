import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A user of the nodes that has to use sudo. */
export const PLAIN_USER = 'rotator';

/**
 * The files of a node: an /etc of its own with its users and an empty control plane, and the keys of its sshd.
 * @returns the host keys, a line of known_hosts without its name each
 */
export async function makeNodeFiles(dir: string, authorizedKey: string): Promise<string[]> {
  const etc = path.join(dir, 'etc');
  await mkdir(dir, { recursive: true });
  await cp('/etc', etc, { recursive: true, dereference: false, verbatimSymlinks: true });
  await rm(path.join(etc, 'cron.d'), { recursive: true, force: true });
  await mkdir(path.join(etc, 'cron.d'));
  await writeFile(path.join(etc, 'crontab'), '');
  for (const folder of ['manifests', 'pki'])
    await mkdir(path.join(etc, 'kubernetes', folder), { recursive: true });
  await addUsers(etc);
  // sshd reads it as the user who logs in.
  await writeFile(path.join(etc, 'ssh', 'authorized_keys'), authorizedKey, { mode: 0o644 });
  const keys: string[] = [];
  for (const type of ['ed25519', 'ecdsa', 'rsa']) {
    const file = path.join(dir, `host_${type}`);
    await run('ssh-keygen', ['-q', '-t', type, '-N', '', '-f', file]);
    keys.push((await readFile(`${file}.pub`, 'utf8')).split(' ').slice(0, 2).join(' '));
  }
  await writeFile(path.join(dir, 'sshd_config'), sshdConfig(dir));
  return keys;
}

async function addUsers(etc: string): Promise<void> {
  const edit = async (name: string, lines: readonly string[], change = (text: string) => text) => {
    const file = path.join(etc, name);
    const text = change(await readFile(file, 'utf8'));
    const users = lines.map((line) => line.split(':')[0]);
    const others = text.split('\n').filter((line) => !users.includes(line.split(':')[0] ?? ''));
    await writeFile(file, `${others.join('\n').trimEnd()}\n${lines.join('\n')}\n`);
  };
  await edit('passwd', [
    'sshd:x:109:65534::/run/sshd:/usr/sbin/nologin',
    `${PLAIN_USER}:x:4242:4242::/:/bin/sh`,
  ]);
  await edit('group', [`${PLAIN_USER}:x:4242:`]);
  // A locked account lets nobody in, with a key or without.
  await edit('shadow', [`${PLAIN_USER}:*:19000:0:99999:7:::`], (text) =>
    text.replace(/^root:[^:]*/mu, 'root:*'),
  );
  await mkdir(path.join(etc, 'sudoers.d'), { recursive: true });
  await writeFile(path.join(etc, 'sudoers.d', PLAIN_USER), `${PLAIN_USER} ALL=(root) NOPASSWD: /bin/sh\n`, {
    mode: 0o440,
  });
}

function sshdConfig(dir: string): string {
  return [
    'Port 22',
    ...['ed25519', 'ecdsa', 'rsa'].map((type) => `HostKey ${path.join(dir, `host_${type}`)}`),
    'AuthorizedKeysFile /etc/ssh/authorized_keys',
    'StrictModes no',
    'UsePAM no',
    'PasswordAuthentication no',
    'PermitRootLogin prohibit-password',
    'AllowTcpForwarding local',
    'PidFile none',
    '',
  ].join('\n');
}
