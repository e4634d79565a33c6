import type { Auditor } from '@colonnade/audit';
import { changeOnRecord } from '../trail.ts';
import type { RecordOwnAct } from './rotation.ts';
import { versionRef } from './version.ts';

/** What this service does to a key by itself, on record as what an admin does to it: before it is begun, and after. */
export function recordOwnActs(auditor: Auditor, key: string): RecordOwnAct {
  return (act, version, work) => {
    const name = version === undefined ? key : versionRef(key, version);
    const span = auditor.begin({
      verb: `key.${act}`,
      requestURI: `/keys/${key}`,
      user: { username: 'crypto-kms', groups: ['colonnade:services'] },
      objectRef: { resource: 'keys', name, subresource: act },
    });
    return changeOnRecord(span, work);
  };
}
