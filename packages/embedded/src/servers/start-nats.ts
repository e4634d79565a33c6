import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { startChild } from './child.ts';
import { type RunningServer, superviseServer, waitReady } from './supervise.ts';

export type NatsOptions = {
  /** The program, from `findNatsServer`. */
  binary: string;
  /** Users, rights and limits. It names no store_dir; address and port are set here and win over it. */
  configText: string;
  /** For the configuration file and the log. */
  dir: string;
  /** For JetStream's files; below `dir` unless given. */
  storeDir?: string;
  /** Any free one unless given. */
  port?: number;
};

export type NatsServer = RunningServer & { readonly url: string; readonly port: number };

/**
 * Starts a nats-server with JetStream on 127.0.0.1. It ends with this process; a restart keeps port and store.
 * @throws ColonnadeError `unavailable` when it does not start, with the end of its log
 */
export async function startNats(options: NatsOptions): Promise<NatsServer> {
  const { dir, configText, storeDir = path.join(dir, 'jetstream') } = options;
  await mkdir(dir, { recursive: true });
  await mkdir(storeDir, { recursive: true, mode: 0o700 });
  // A test may have put a password into it.
  await writeFile(path.join(dir, 'nats.conf'), configText, { mode: 0o600 });
  const start = (wanted: number) => launch(options.binary, dir, storeDir, wanted);
  const { child, port, logFile } = await start(options.port ?? -1);
  const server = superviseServer(child, logFile, async () => (await start(port)).child);
  return Object.defineProperties(server, {
    url: { value: `nats://127.0.0.1:${port}`, enumerable: true },
    port: { value: port, enumerable: true },
  }) as NatsServer;
}

async function launch(binary: string, dir: string, storeDir: string, wanted: number) {
  const logFile = path.join(dir, 'nats.log');
  const address = ['--addr', '127.0.0.1', '--port', String(wanted), '--ports_file_dir', dir];
  const store = ['--jetstream', '--store_dir', storeDir];
  const child = await startChild({
    command: binary,
    args: ['--config', path.join(dir, 'nats.conf'), ...address, ...store],
    logFile,
  });
  const portsFile = path.join(dir, `${path.basename(binary)}_${child.pid}.ports`);
  const port = await waitReady('nats-server', child, logFile, () => readPort(portsFile));
  await rm(portsFile, { force: true });
  return { child, port, logFile };
}

/** The server writes this file when it takes connections; a half-written one is read again. */
async function readPort(file: string): Promise<number | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const match = /"(?:nats|tls):\/\/[^"]*:(\d+)"/.exec(text);
  return match ? Number(match[1]) : undefined;
}
