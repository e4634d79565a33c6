import { type Route, route } from '@colonnade/bus';
import { ColonnadeError, kmsListKeys, kmsRotateKey } from '@colonnade/contracts';
import type { Events } from '../events.ts';
import type { GrantGuard } from '../grant-guard.ts';
import { changeOnRecord } from '../trail.ts';
import { type Keyring, type KeyVersion, PILLARS_KEY } from './keyring.ts';

/** The keyring as operators see it: names, versions and times, never a key. */
export function keyRoutes(keyring: Keyring | undefined, guard: GrantGuard, events: Events): Route[] {
  return [
    route(kmsListKeys, async () => {
      if (keyring === undefined) return { keys: [] };
      await keyring.refresh();
      return { keys: [{ name: PILLARS_KEY, versions: keyring.versions().map(toWire) }] };
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
        if (keyring === undefined)
          throw new ColonnadeError('conflict', 'there is no keyring: start the KMS with KMS_ROOT_KEY_FILE');
        if (name !== PILLARS_KEY) throw new ColonnadeError('not_found', 'there is no such key');
        const version = await keyring.rotate();
        events.keyRotated(version);
        return { version: toWire(version) };
      });
    }),
  ];
}

function toWire({ version, kid, state, created_at_ms, active_from_ms }: KeyVersion) {
  return { version, kid, state, created_at_ms, active_from_ms };
}
