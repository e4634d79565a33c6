import { ColonnadeError, PILLARS_KEY } from '@colonnade/contracts';
import type { KmsConfig } from '../config.ts';
import type { Keys } from '../envelope.ts';
import type { Events } from '../events.ts';
import { fixedKeys, loadKek, loadKey } from '../kek.ts';
import { type Keyring, openKeyring } from './keyring.ts';
import { type RootKey, toRootKey } from './root-key.ts';

/**
 * What pillars are sealed with: the keyring where there is a root key, else the configured KEK alone (seed 000). Neither: nothing can be sealed
 * or opened, and every item says so.
 * @throws ColonnadeError `misconfigured`
 */
export async function openKeys(
  config: KmsConfig,
  events: Events,
): Promise<{ keys: Keys; keyring: Keyring | undefined }> {
  const kek = loadKek({ file: config.kekFile, base64: config.kekBase64?.reveal(), kid: config.kid });
  const root = rootKeyOf(config);
  if (root === undefined) {
    if (kek === undefined) events.keyMissing();
    else events.keyLoaded(kek.kid);
    return { keys: fixedKeys(kek), keyring: undefined };
  }
  const keyring = await openKeyring({
    stateDir: config.stateDir,
    name: PILLARS_KEY,
    root,
    oldRoot: oldRootKeyOf(config),
    first: kek,
    prepublishMs: config.keyPrepublishS * 1000,
  });
  events.keyLoaded(keyring.active().kid);
  return { keys: keyring, keyring };
}

/** The root keys as they are configured. @throws ColonnadeError `misconfigured` */
export function rootKeysOf(config: KmsConfig): { root: RootKey | undefined; oldRoot: RootKey | undefined } {
  const root = rootKeyOf(config);
  return { root, oldRoot: root === undefined ? undefined : oldRootKeyOf(config) };
}

function rootKeyOf({ rootKeyFile, rootKeyBase64, oldRootKeyFile }: KmsConfig): RootKey | undefined {
  const names = { what: 'root key', file: 'KMS_ROOT_KEY_FILE', base64: 'KMS_ROOT_KEY_B64' };
  const key = loadKey({ file: rootKeyFile, base64: rootKeyBase64?.reveal() }, names);
  if (key !== undefined) return toRootKey(key);
  if (oldRootKeyFile === undefined) return undefined;
  throw new ColonnadeError(
    'misconfigured',
    'KMS_OLD_ROOT_KEY_FILE is set, and no new root key: set KMS_ROOT_KEY_FILE',
  );
}

function oldRootKeyOf({ oldRootKeyFile: file }: KmsConfig): RootKey | undefined {
  const name = 'KMS_OLD_ROOT_KEY_FILE';
  const key = loadKey({ file }, { what: 'root key', file: name, base64: name });
  return key === undefined ? undefined : toRootKey(key);
}
