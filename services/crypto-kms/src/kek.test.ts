import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { loadKek } from './kek.ts';

let dir: string;
const key = randomBytes(32);
const kid = 'core-kek-v1';
before(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'colonnade-kek-'));
});
after(() => rm(dir, { recursive: true }));

async function fileOf(content: string | Buffer, mode = 0o600): Promise<string> {
  const file = path.join(dir, randomBytes(6).toString('hex'));
  await writeFile(file, content);
  await chmod(file, mode);
  return file;
}

test('nothing configured is no KEK', () => assert.equal(loadKek({ kid }), undefined));

describe('one key, in each of its forms', () => {
  const table: [string, () => Promise<{ file?: string; base64?: string }>][] = [
    ['base64 in the environment', async () => ({ base64: key.toString('base64') })],
    ['base64 in a file', async () => ({ file: await fileOf(key.toString('base64')) })],
    ['base64 and a line end', async () => ({ file: await fileOf(`${key.toString('base64')}\n`) })],
    ['base64 and CR LF', async () => ({ file: await fileOf(`${key.toString('base64')}\r\n`) })],
    ['the bytes themselves', async () => ({ file: await fileOf(key) })],
    ['a file nobody may write', async () => ({ file: await fileOf(key, 0o400) })],
  ];
  for (const [name, source] of table) {
    test(name, async () => {
      const kek = loadKek({ ...(await source()), kid });
      assert.equal(kek?.kid, kid);
      assert.deepEqual(kek?.key.export(), key);
    });
  }
});

describe('refused, saying why and never the key', () => {
  const b64 = (bytes: number) => randomBytes(bytes).toString('base64');
  const table: [string, () => Promise<{ file?: string; base64?: string }>, RegExp][] = [
    ['16 bytes', async () => ({ base64: b64(16) }), /holds 16 bytes, the KEK is exactly 32/u],
    ['33 bytes', async () => ({ base64: b64(33) }), /holds 33 bytes/u],
    ['a line end in the environment', async () => ({ base64: `${b64(32)}\n` }), /not standard base64/u],
    [
      'base64url',
      async () => ({ base64: Buffer.alloc(32, 0xff).toString('base64url') }),
      /not standard base64/u,
    ],
    ['no padding', async () => ({ base64: b64(32).slice(0, -1) }), /not standard base64/u],
    [
      'a passphrase',
      async () => ({ file: await fileOf('correct horse battery staple') }),
      /not standard base64/u,
    ],
    [
      'a passphrase of 32 letters',
      async () => ({ file: await fileOf('a'.repeat(32)) }),
      /32 characters of text/u,
    ],
    ['31 raw bytes', async () => ({ file: await fileOf(Buffer.alloc(31, 0x80)) }), /not standard base64/u],
    ['an empty file', async () => ({ file: await fileOf('') }), /holds 0 bytes/u],
    ['two lines', async () => ({ file: await fileOf(`${b64(32)}\n\n`) }), /not standard base64/u],
    ['a file its group may read', async () => ({ file: await fileOf(key, 0o640) }), /chmod 600/u],
    ['a file everyone may read', async () => ({ file: await fileOf(key, 0o604) }), /chmod 600/u],
    ['a folder', async () => ({ file: dir }), /cannot be read/u],
  ];
  for (const [name, source, message] of table) {
    test(name, async () => {
      const from = await source();
      assert.throws(
        () => loadKek({ ...from, kid }),
        (error: Error & { code?: string }) => {
          assert.equal(error.code, 'misconfigured');
          assert.match(error.message, message);
          if (from.base64 !== undefined) assert.ok(!error.message.includes(from.base64.trim()));
          return true;
        },
      );
    });
  }
});
