import { z } from 'zod';
import { int } from './codec.ts';
import { defineEndpoint, subjectOf } from './endpoints.ts';
import { defineGranted, zGrant } from './grant.ts';

/** The keyring of crypto-kms as others ask for it: never a key. */

/** The key that pillars are sealed with. */
export const PILLARS_KEY = 'pillars';
/** The key that identities of workloads are signed from. It seals nothing. */
export const IDENTITY_KEY = 'identity';

export const KEY_STATES = ['prepublished', 'active', 'retired', 'destroyed'] as const;
/** One version of a key, without the key. Times are milliseconds since the epoch. */
export const zKeyVersion = z.strictObject({
  version: int({ min: 1 }),
  kid: z.string(),
  state: z.enum(KEY_STATES),
  created_at_ms: int({ min: 0 }),
  active_from_ms: int({ min: 0 }),
  /** When it was given up, and when it is gone for good; null: it is kept. */
  destroyed_at_ms: int({ min: 0 }).nullable(),
  erase_after_ms: int({ min: 0 }).nullable(),
  /** At most so many encryptions were done with it; with random nonces a key should do 2^32 at most. */
  encryptions: int({ min: 0 }),
});

/** The keyring, by name; empty where the KMS has none. */
export const kmsListKeys = defineEndpoint({
  subject: subjectOf('kms', 'keys-list'),
  server: 'crypto-kms',
  callers: ['pillar-api', 'operator'],
  request: z.strictObject({}),
  response: z.strictObject({
    keys: z.array(
      z.strictObject({
        name: z.string(),
        /** Older versions open nothing. */
        min_version: int({ min: 1 }),
        versions: z.array(zKeyVersion),
      }),
    ),
  }),
});

/** Makes the next version of a key, with an admin's grant for this key. */
export const kmsRotateKey = defineGranted({
  subject: subjectOf('kms', 'keys-rotate.api'),
  server: 'crypto-kms',
  callers: ['pillar-api'],
  grant: 'key.rotate',
  request: z.strictObject({ grant: zGrant, name: z.string().min(1).max(48) }),
  response: z.strictObject({ version: zKeyVersion }),
});

const zOneVersion = z.strictObject({
  grant: zGrant,
  name: z.string().min(1).max(48),
  version: int({ min: 1, max: 999_999 }),
});

/** Bars older versions of a key from opening, or lets them open again; with an admin's grant for this key and version. */
export const kmsSetMinVersion = defineGranted({
  subject: subjectOf('kms', 'keys-min-version.api'),
  server: 'crypto-kms',
  callers: ['pillar-api'],
  grant: 'key.min-version',
  request: zOneVersion,
  response: z.strictObject({}),
});

/** Gives a barred version up: it is gone for good a while later. With an admin's grant for this key and version. */
export const kmsDestroyKey = defineGranted({
  subject: subjectOf('kms', 'keys-destroy.api'),
  server: 'crypto-kms',
  callers: ['pillar-api'],
  grant: 'key.destroy',
  request: zOneVersion,
  response: z.strictObject({ version: zKeyVersion }),
});

/** Takes that back, as long as it is not gone. */
export const kmsUndestroyKey = defineGranted({
  subject: subjectOf('kms', 'keys-undestroy.api'),
  server: 'crypto-kms',
  callers: ['pillar-api'],
  grant: 'key.undestroy',
  request: zOneVersion,
  response: z.strictObject({ version: zKeyVersion }),
});
