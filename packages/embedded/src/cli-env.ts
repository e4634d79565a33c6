import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Stack } from './stack.ts';

type Asked = Pick<Stack, 'dir' | 'api' | 'nats' | 'auditLog'> & {
  secrets: Pick<Stack['secrets'], 'busNkeyFiles'>;
};

/**
 * Writes what the command `colonnade` asks this installation with, for a shell to read: `. cli.env`. Addresses are others
 * after each start; of secrets only their files are named.
 * @returns the file
 */
export async function writeCliEnv({ dir, api, nats, auditLog, secrets }: Asked): Promise<string> {
  const variables = {
    COLONNADE_URL: api.url,
    COLONNADE_TOKEN_FILE: path.join(dir, 'secrets', 'admin-token'),
    COLONNADE_NATS_URL: nats.url,
    COLONNADE_NATS_NKEY_FILE: secrets.busNkeyFiles.operator,
    COLONNADE_AUDIT_LOG: auditLog,
  };
  const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${quote(value)}\n`);
  const file = path.join(dir, 'cli.env');
  await writeFile(file, lines.join(''));
  return file;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
