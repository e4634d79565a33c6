import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Duplex } from 'node:stream';
import { ColonnadeError } from '@colonnade/contracts';
import { writeKnownHosts } from '../rules/known-hosts.ts';
import { collect } from './collect.ts';
import { readSshKey } from './private-key.ts';
import type { Ssh, SshResult, SshTarget } from './ssh.ts';

const CONNECT_MS = 15_000;
/** What `ssh` ends with for faults of its own. */
const OWN_FAULT = 255;
/** Certificates of hosts, and nothing else: what is pinned is their authority. */
const ALGORITHMS = [
  'ssh-ed25519',
  ...['256', '384', '521'].map((bits) => `ecdsa-sha2-nistp${bits}`),
  ...['512', '256'].map((bits) => `rsa-sha2-${bits}`),
].map((name) => `${name}-cert-v01@openssh.com`);
const OPTIONS = {
  BatchMode: 'yes',
  StrictHostKeyChecking: 'yes',
  UserKnownHostsFile: 'known_hosts',
  GlobalKnownHostsFile: '/dev/null',
  UpdateHostKeys: 'no',
  HostKeyAlgorithms: ALGORITHMS.join(','),
  IdentitiesOnly: 'yes',
  IdentityAgent: 'none',
  PreferredAuthentications: 'publickey',
  ConnectTimeout: String(CONNECT_MS / 1000),
  ServerAliveInterval: '5',
  ServerAliveCountMax: '3',
  EscapeChar: 'none',
  LogLevel: 'INFO',
};

/**
 * Connects through OpenSSH's own `ssh`, for a host of which only the authority of its certificate is pinned
 * (`@cert-authority`), which no SSH library for Node.js checks. One process holds the connection, and further ones go
 * through it. Key and pins are files only until that one is let in; nothing of the user's configuration, agent or own
 * known hosts is read.
 * @param program OpenSSH's client
 * @throws ColonnadeError as `connectSsh`; `forbidden` too where there is no OpenSSH here
 */
export async function connectOpenSsh(target: SshTarget, program = 'ssh'): Promise<Ssh> {
  const { host, port } = target;
  const where = `${host}:${port}`;
  const dir = await mkdtemp(path.join(tmpdir(), 'colonnade-ssh-'));
  const clean = () => rm(dir, { recursive: true, force: true });
  const start = (args: readonly string[]) => startSsh(program, dir, target, args);
  try {
    await writeFiles(dir, target);
    // It ends with us, however we end: then nothing comes through the pipe any more.
    const master = start(['-M', '-i', 'key', host, 'cat']);
    const ended = new Promise((resolve) => master.once('close', resolve)).then(clean);
    await entered(master, where, target);
    await Promise.all(['key', 'known_hosts'].map((name) => rm(path.join(dir, name), { force: true })));
    // Without the one that holds the connection there is none, and no new one is made.
    const through = (args: readonly string[]) => start(['-o', 'ProxyCommand=false', ...args]);
    return {
      isOpen: () => master.exitCode === null && master.signalCode === null,
      run: (command, input, timeoutMs) =>
        runChild(through([host, command]), { input, timeoutMs, where, giveUp: () => master.kill() }),
      async forward(to) {
        const child = through(['-W', `127.0.0.1:${to}`, host]);
        const stream = Duplex.from({ readable: child.stdout, writable: child.stdin });
        stream.on('close', () => child.kill());
        return stream;
      },
      async [Symbol.asyncDispose]() {
        master.kill();
        await ended;
      },
    };
  } catch (thrown) {
    await clean();
    throw thrown;
  }
}

function startSsh(
  program: string,
  dir: string,
  { user, port }: SshTarget,
  args: readonly string[],
): ChildProcessWithoutNullStreams {
  const options = Object.entries(OPTIONS).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  const all = ['-F', 'none', ...options, '-S', 'control', '-T', '-l', user, '-p', String(port), ...args];
  const env = { PATH: process.env.PATH ?? '', HOME: dir, LC_ALL: 'C' };
  const child = spawn(program, all, { cwd: dir, env });
  // Whoever reads its end is told by that; a pipe that breaks says nothing more.
  child.on('error', () => {});
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.on('error', () => {});
  return child;
}

async function writeFiles(dir: string, { privateKey, knownHosts }: SshTarget): Promise<void> {
  await chmod(dir, 0o700);
  const files = { key: readSshKey(privateKey), known_hosts: writeKnownHosts(knownHosts) };
  for (const [name, text] of Object.entries(files))
    await writeFile(path.join(dir, name), text, { mode: 0o600, flag: 'wx' });
}

/** Waits until the node has let us in: what we send comes back. */
async function entered(
  master: ChildProcessWithoutNullStreams,
  where: string,
  { host, user }: SshTarget,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const said = collect();
  master.stderr.on('data', said.keep);
  master.stdout.once('data', () => resolve());
  master.on('close', () => reject(refusal(said.text(), where, user)));
  master.on('error', (cause) => reject(missing(host, cause)));
  const timer = setTimeout(() => {
    reject(new ColonnadeError('unavailable', `${where} cannot be reached by SSH: no answer in time`));
  }, CONNECT_MS);
  master.stdin.write('entered\n');
  try {
    await promise;
  } catch (thrown) {
    master.kill();
    throw thrown;
  } finally {
    clearTimeout(timer);
  }
}

function missing(host: string, cause: unknown): ColonnadeError {
  const message = `of ${host} only the authority of its host certificate is pinned (@cert-authority), which OpenSSH has to check: there is no program ssh here. Install it, or pin the plain key of the node too`;
  return new ColonnadeError('forbidden', message, { cause });
}

/** `ssh` tells why only in words; what is not known here is told as it is. */
function refusal(said: string, where: string, user: string): ColonnadeError {
  // Its warnings come in frames.
  const lines = said.split(/\r?\n/u).filter((line) => line.trim() !== '' && !line.startsWith('@'));
  const first = (lines[0] ?? 'it has not said why').slice(0, 300);
  if (/^Load key/mu.test(said)) return new ColonnadeError('unprocessable', 'the SSH key cannot be read');
  if (/Permission denied/u.test(said))
    return new ColonnadeError('unauthorized', `${where} does not accept the key for ${user}`);
  if (/host key|certificate/iu.test(said))
    return new ColonnadeError('forbidden', `the host certificate of ${where} is refused: ${first}`);
  if (/No user exists/u.test(said))
    return new ColonnadeError('forbidden', `ssh does not run here: ${first} (in /etc/passwd)`);
  return new ColonnadeError('unavailable', `${where} cannot be reached by SSH: ${first}`);
}

type Job = { input: string; timeoutMs: number; where: string; giveUp: () => void };

async function runChild(
  child: ChildProcessWithoutNullStreams,
  { input, timeoutMs, where, giveUp }: Job,
): Promise<SshResult> {
  const [stdout, stderr] = [collect(), collect()];
  child.stdout.on('data', stdout.keep);
  child.stderr.on('data', stderr.keep);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill();
    giveUp();
  }, timeoutMs);
  child.stdin.end(input);
  const { promise, resolve } = Promise.withResolvers<number | null>();
  child.on('close', resolve);
  const code = await promise;
  clearTimeout(timer);
  if (isLate) throw new ColonnadeError('unavailable', `${where}: no end within ${timeoutMs} ms`);
  // Without a code, which is below zero where it was not even started: nobody knows what was done.
  if (code === null || code < 0 || code === OWN_FAULT)
    throw new ColonnadeError('unavailable', `${where}: the connection broke off`);
  return { code, stdout: stdout.text(), stderr: stderr.text() };
}
