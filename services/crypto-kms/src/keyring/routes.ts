import { type Route, route } from '@colonnade/bus';
import {
  type Call,
  ColonnadeError,
  type Endpoint,
  type GrantAct,
  keyVersionResource,
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
    endpoint: Endpoint,
    act: GrantAct,
    { grant, name, version }: { grant: string; name: string; version: number },
    call: Call,
    work: (keyring: Keyring) => Promise<T>,
  ) => {
    const resource = keyVersionResource(name, version);
    const objectRef = { resource: 'keys', name: resource, subresource: act.slice('key.'.length) };
    return guard({ endpoint, act, call, grant, resource, objectRef }, changeOnRecord<T>, async () =>
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
    route(kmsRotateKey, ({ grant, name }, call) => {
      const objectRef = { resource: 'keys', name, subresource: 'rotate' };
      const what = {
        endpoint: kmsRotateKey,
        call,
        act: 'key.rotate',
        grant,
        resource: name,
        objectRef,
      } as const;
      return guard(what, changeOnRecord, async () => {
        const version = await theKey(keyrings, name).rotate();
        events.keyRotated(version);
        return { version };
      });
    }),
    route(kmsSetMinVersion, (asked, call) =>
      decide(kmsSetMinVersion, 'key.min-version', asked, call, async (key) => {
        await key.setMinVersion(asked.version);
        events.minVersionSet(asked);
        return {};
      }),
    ),
    route(kmsDestroyKey, (asked, call) =>
      decide(kmsDestroyKey, 'key.destroy', asked, call, async (key) => {
        const version = await key.destroy(asked.version, undoMs);
        events.keyDestroyed(version);
        return { version };
      }),
    ),
    route(kmsUndestroyKey, (asked, call) =>
      decide(kmsUndestroyKey, 'key.undestroy', asked, call, async (key) => {
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
