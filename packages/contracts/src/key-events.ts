/** What crypto-kms tells of its keyring on the stream EVENTS. The subject ends in the same words. */
export const KEY_EVENT_TYPES = [
  /** A next version was made, by hand or by age; it seals later. */
  'key.rotated',
  'key.activated',
  'key.retired',
  /** The least version was raised: older ones open nothing. */
  'key.barred',
  /** It was lowered: some of them open again. */
  'key.unbarred',
  'key.destroyed',
  'key.undestroyed',
  /** Destroyed for so long that it cannot be taken back. */
  'key.erased',
] as const;
export type KeyEventType = (typeof KEY_EVENT_TYPES)[number];

/** CloudEvents `source` of them. */
export const KEYS_SOURCE = 'urn:colonnade:keys';
