import { type Route, route } from '@colonnade/bus';
import {
  type Call,
  ColonnadeError,
  kmsDestroyKey,
  kmsListKeys,
  kmsRotateKey,
  kmsSetMinVersion,
  kmsUndestroyKey,
} from '@colonnade/contracts';
import type { Events } from '../events.ts';
import type { GrantGuard } from '../grant-guard.ts';
import { changeOnRecord } from '../trail.ts';
import type { Keyring } from './keyring.ts';
import { versionRef } from './version.ts';

/** What decides about one version of a key. */
type Decision = typeof kmsSetMinVersion | typeof kmsDestroyKey | typeof kmsUndestroyKey;

/**
 * The keyring as operators see it: names, versions and times, never a key.
 * @param keyrings by name; none without a root key
 */
export function keyRoutes(
  keyrings: readonly Keyring[],
  guard: GrantGuard,
  events: Events,
  undoMs: number,
): Route[] {
  const decide = <T>(
    endpoint: Decision,
    message: { grant: string; name: string; version: number },
    call: Call,
    work: (keyring: Keyring) => Promise<T>,
  ) => {
    const { name, version } = message;
    const subresource = endpoint.grant.slice('key.'.length);
    const objectRef = { resource: 'keys', name: versionRef(name, version), subresource };
    return guard({ endpoint, message, call, objectRef }, changeOnRecord<T>, async () =>
      work(theKey(keyrings, name)),
    );
  };
  return [
    route(kmsListKeys, async () => {
      for (const keyring of keyrings) await keyring.refresh();
      const keys = keyrings.map((one) => {
        return { name: one.name, min_version: one.minVersion(), versions: [...one.versions()] };
      });
      return { keys };
    }),
    route(kmsRotateKey, (message, call) => {
      const { name } = message;
      const objectRef = { resource: 'keys', name, subresource: 'rotate' };
      return guard({ endpoint: kmsRotateKey, message, call, objectRef }, changeOnRecord, async () => {
        const version = await theKey(keyrings, name).rotate();
        events.keyRotated(version);
        return { version };
      });
    }),
    route(kmsSetMinVersion, (asked, call) =>
      decide(kmsSetMinVersion, asked, call, async (key) => {
        await key.setMinVersion(asked.version);
        events.minVersionSet(asked);
        return {};
      }),
    ),
    route(kmsDestroyKey, (asked, call) =>
      decide(kmsDestroyKey, asked, call, async (key) => {
        const version = await key.destroy(asked.version, undoMs);
        events.keyDestroyed(version);
        return { version };
      }),
    ),
    route(kmsUndestroyKey, (asked, call) =>
      decide(kmsUndestroyKey, asked, call, async (key) => {
        const version = await key.undestroy(asked.version);
        events.keyUndestroyed(version);
        return { version };
      }),
    ),
  ];
}

/** @throws ColonnadeError `conflict` (no keyring), `not_found` */
function theKey(keyrings: readonly Keyring[], name: string): Keyring {
  if (keyrings.length === 0)
    throw new ColonnadeError('conflict', 'there is no keyring: start the KMS with KMS_ROOT_KEY_FILE');
  const found = keyrings.find((one) => one.name === name);
  if (found === undefined)
    throw new ColonnadeError('not_found', `there is no such key, only ${keyrings.map(nameOf).join(' and ')}`);
  return found;
}

function nameOf({ name }: Keyring): string {
  return name;
}
