import type { Keyring } from '../src/keyring/keyring.ts';
import { type KeyringOptions, openKeyring } from '../src/keyring/keyring.ts';

export const UNDO_MS = 60_000;

/** What becomes of a key, as the routes and turns of the KMS have it done; each leaves something on disk. */
export const ACTS = {
  rotate: async (ring) => void (await ring.rotate()),
  claim: (ring) => ring.prepare(1),
  'min-version': (ring) => ring.setMinVersion(2),
  lower: (ring) => ring.setMinVersion(1),
  destroy: async (ring) => void (await ring.destroy(1, UNDO_MS)),
  undestroy: async (ring) => void (await ring.undestroy(1)),
  erase: async (ring) => void (await ring.eraseDue()),
} as const satisfies Record<string, (ring: Keyring) => Promise<void>>;

export type ActName = keyof typeof ACTS;

/** Acts on opening: the first version, and another root key. */
export const OPENINGS = ['first', 'root-key'] as const;

/** Does one; `begin` is called when all that comes before it is done. */
export async function act(
  name: ActName | (typeof OPENINGS)[number],
  options: KeyringOptions,
  begin = () => {},
): Promise<Keyring> {
  if (name === 'first' || name === 'root-key') {
    begin();
    return await openKeyring(options);
  }
  const ring = await openKeyring(options);
  begin();
  await ACTS[name](ring);
  return ring;
}
