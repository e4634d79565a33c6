import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BusUser } from '@colonnade/contracts';
import { startChild } from './servers/child.ts';
import { type RunningServer, superviseServer, waitReady } from './servers/supervise.ts';

const SERVICES = fileURLToPath(new URL('../../../services/', import.meta.url));

/** A service as a child process of its own; a restart keeps its environment, and its port once it has one. */
export type ServiceProcess = RunningServer & { readonly name: BusUser; readonly url: string };

export type ServiceOptions = {
  name: BusUser;
  /** The whole environment, beside PATH. */
  env: Readonly<Record<string, string>>;
  /** Which variable holds the port, so that a restart comes back at the same address. */
  portVariable: string;
  logFile: string;
};

/** Starts a service and waits for its ready line. @throws ColonnadeError `unavailable` with the end of its log */
export async function startService(options: ServiceOptions): Promise<ServiceProcess> {
  const { name, logFile, portVariable } = options;
  const launch = async (port: string) => {
    const from = await stat(logFile).then(
      (s) => s.size,
      () => 0,
    );
    const child = await startChild({
      command: process.execPath,
      args: [path.join(SERVICES, name, 'src', 'main.ts')],
      logFile,
      env: { PATH: process.env.PATH ?? '', ...options.env, [portVariable]: port },
    });
    const url = await waitReady(name, child, logFile, () => readReadyUrl(logFile, from));
    return { child, url };
  };
  const first = await launch(options.env[portVariable] ?? '0');
  const port = new URL(first.url).port;
  const server = superviseServer(first.child, logFile, async () => (await launch(port)).child);
  return Object.defineProperties(server, {
    name: { value: name, enumerable: true },
    url: { value: first.url, enumerable: true },
  }) as ServiceProcess;
}

/** The URL in the ready line written after `from` bytes of the log; undefined while there is none. */
async function readReadyUrl(logFile: string, from: number): Promise<string | undefined> {
  const text = (await readFile(logFile)).subarray(from).toString('utf8');
  for (const line of text.split('\n')) {
    if (!line.includes('"msg":"ready"')) continue;
    const match = /"url":"([^"]+)"/u.exec(line);
    if (match?.[1] !== undefined) return match[1];
  }
  return undefined;
}
