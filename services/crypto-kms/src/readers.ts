import path from 'node:path';
import { ColonnadeError, int, LIMITS, READER_RIGHTS, zScope } from '@colonnade/contracts';
import { z } from 'zod';
import {
  createStateFile,
  listStateDir,
  openStateDir,
  readStateFile,
  removeStateFile,
  replaceStateFile,
} from './state-dir.ts';

const zTokenId = z.string().regex(/^[A-Za-z0-9]{8,32}$/u);

/** One API token as this service knows it: who it belongs to, what it may ask here, and the key its grants are signed with. */
const zReader = z.strictObject({
  format: z.literal('colonnade-reader/1'),
  token_id: zTokenId,
  sub: z.string().min(1).max(128),
  rights: z.array(z.enum(READER_RIGHTS)).min(1),
  /** Where it may reveal; absent: everywhere. */
  reveal_scopes: z.array(zScope).min(1).max(LIMITS.scopedRoles).optional(),
  grant_key_hex: z.string().regex(/^[0-9a-f]{64}$/u),
  expires_at_ms: int({ min: 0 }).nullable(),
  origin: z.enum(['bootstrap', 'api']),
  /** Deleted by an admin. Kept for the bootstrap token alone, which the next start would bring back. */
  deleted: z.boolean(),
});
export type Reader = z.output<typeof zReader>;

/** The readers registry: `readers/<token id>.json`, one file each, so that processes never rewrite each other's entries. */
export type Readers = {
  find(tokenId: string): Promise<Reader | undefined>;
  /**
   * @param revive takes back a deletion
   * @throws ColonnadeError `conflict` when the token is known with another key, or was deleted
   */
  put(reader: Omit<Reader, 'format' | 'deleted'>, revive?: boolean): Promise<void>;
  /** Whether some token may administer now. */
  hasAdmin(nowMs: number): Promise<boolean>;
  /** @returns false when there was none */
  remove(tokenId: string): Promise<boolean>;
};

/** @throws ColonnadeError `misconfigured` when a file of the registry is broken; nothing is changed */
export async function openReaders(stateDir: string): Promise<Readers> {
  const dir = path.join(stateDir, 'readers');
  openStateDir(dir);
  const fileOf = (tokenId: string) => path.join(dir, `${tokenId}.json`);
  for (const name of listStateDir(dir)) await readStateFile(path.join(dir, name), zReader);
  const read = async (tokenId: string) =>
    zTokenId.safeParse(tokenId).success ? await readStateFile(fileOf(tokenId), zReader) : undefined;
  return {
    async find(tokenId) {
      const reader = await read(tokenId);
      return reader === undefined || reader.deleted ? undefined : reader;
    },
    async put(entry, revive = false) {
      const reader: Reader = { format: 'colonnade-reader/1', ...entry, deleted: false };
      if (await createStateFile(fileOf(reader.token_id), zReader, reader)) return;
      const known = await read(reader.token_id);
      if (known === undefined || (known.deleted && !revive))
        throw new ColonnadeError('conflict', 'the API token was deleted; its id is never used again');
      if (known.grant_key_hex !== reader.grant_key_hex)
        throw new ColonnadeError('conflict', 'the API token is registered with another key');
      await replaceStateFile(fileOf(reader.token_id), zReader, reader);
    },
    async hasAdmin(nowMs) {
      for (const name of listStateDir(dir)) {
        const reader = await readStateFile(path.join(dir, name), zReader);
        if (reader === undefined || reader.deleted || !reader.rights.includes('admin')) continue;
        if (reader.expires_at_ms === null || reader.expires_at_ms > nowMs) return true;
      }
      return false;
    },
    async remove(tokenId) {
      const known = await read(tokenId);
      if (known === undefined || known.deleted) return false;
      if (known.origin === 'api') return removeStateFile(fileOf(tokenId));
      await replaceStateFile(fileOf(tokenId), zReader, { ...known, deleted: true });
      return true;
    },
  };
}
