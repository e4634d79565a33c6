import { auditPolicySettings } from '@colonnade/audit';
import { LIMITS, zAudience } from '@colonnade/contracts';
import {
  busSettings,
  type ConfigOf,
  createSecret,
  logSettings,
  opsSettings,
  optionalSetting,
  type Parse,
  readConfig,
  setting,
  zCount,
  zPath,
  zSeconds,
  zText,
  zUrl,
} from '@colonnade/service-kit';

const zKid: Parse<string> = (text) => {
  if (text.length > 128) throw new Error('must be at most 128 characters');
  return zText(text);
};

/** A batch of the largest size has to fit into one second. */
const zItemsPerSecond: Parse<number> = (text) => {
  const count = zCount(text);
  if (count < LIMITS.kmsBatchItems)
    throw new Error(`must be at least ${LIMITS.kmsBatchItems}, the size of one batch`);
  return count;
};

const zIssuer: Parse<string> = (text) => {
  zUrl('https:', 'http:')(text);
  if (text.endsWith('/')) throw new Error('must not end with a slash');
  return text;
};

const zAudiences: Parse<readonly string[]> = (text) => {
  const names = text.split(',').map((name) => name.trim());
  const wrong = names.find((name) => !zAudience.safeParse(name).success || name.startsWith('colonnade'));
  if (wrong !== undefined)
    throw new Error('must be names of audiences; those of Colonnade itself are not among them');
  return names;
};

const zBuffer: Parse<number> = (text) => {
  const count = zCount(text);
  if (count < 1) throw new Error('must be at least 1');
  return count;
};

export const kmsSettings = {
  kekFile: optionalSetting('PILLARS_KEK_FILE', zPath, {
    help: 'file with the KEK: 32 bytes or their base64; readable by its owner alone',
  }),
  kekBase64: optionalSetting('PILLARS_KEK_B64', createSecret, {
    help: 'the KEK as base64 of 32 bytes; better a file',
  }),
  kid: setting('PILLARS_KID', zKid, { help: 'name of the KEK', default: 'core-kek-v1' }),
  rootKeyFile: optionalSetting('KMS_ROOT_KEY_FILE', zPath, {
    help: 'file with the root key, 32 bytes or their base64, which seals the keyring; unset: no keyring, the KEK alone',
  }),
  rootKeyBase64: optionalSetting('KMS_ROOT_KEY_B64', createSecret, {
    help: 'the root key as base64 of 32 bytes; better a file',
  }),
  oldRootKeyFile: optionalSetting('KMS_OLD_ROOT_KEY_FILE', zPath, {
    help: 'file with the root key before; what it sealed is sealed by the new one at the start',
  }),
  keyMaxAgeS: optionalSetting('KMS_KEY_MAX_AGE_S', zSeconds, {
    help: 'age at which the key that seals is followed by a new one, seconds; unset: only by hand',
  }),
  keyPrepublishS: setting('KMS_KEY_PREPUBLISH_S', zSeconds, {
    help: 'how long a new key is known before it seals or signs, seconds; below 60 the log warns: whoever keeps the published keys may not know it yet',
    default: '60',
  }),
  keyUndoS: setting('KMS_KEY_UNDO_S', zSeconds, {
    help: 'how long a destroyed key can be taken back, seconds; then it is gone',
    default: '604800',
  }),
  keyWarnEncryptions: setting('KMS_KEY_WARN_ENCRYPTIONS', zCount, {
    help: 'encryptions of the key that seals after which the log warns; rotate it well before 2^32',
    default: '1000000000',
  }),
  identityIssuer: setting('KMS_IDENTITY_ISSUER', zIssuer, {
    help: '`iss` of the tokens of workloads: the URL others reach pillar-api at, without a slash at its end',
    default: 'http://127.0.0.1:8080',
  }),
  identityAudiences: optionalSetting('KMS_IDENTITY_AUDIENCES', zAudiences, {
    help: 'for whom else a workload may have a token made, separated by commas, such as `kubernetes`; unset: nobody',
  }),
  identityKeyMaxAgeS: setting('KMS_IDENTITY_KEY_MAX_AGE_S', zSeconds, {
    help: 'age at which the key that signs identities is followed by a new one, seconds',
    default: '2592000',
  }),
  stateDir: setting('KMS_STATE_DIR', zPath, {
    help: 'folder of the keyring, the identity key, revocations and readers; made with mode 0700; shared by all replicas',
  }),
  bootstrapTokenFile: optionalSetting('BOOTSTRAP_TOKEN_FILE', zPath, {
    help: 'file (0600) with the API token of the first admin',
  }),
  opensPerSecond: setting('KMS_OPENS_PER_SECOND', zItemsPerSecond, {
    help: 'items one master may have opened per second and replica',
    default: '20000',
  }),
  auditBuffer: setting('KMS_AUDIT_BUFFER', zBuffer, {
    help: 'audit records held while the stream does not take them',
    default: '10000',
  }),
  ...auditPolicySettings,
  ...busSettings('crypto-kms'),
  ...opsSettings(8082, 'health, metrics and JWKS'),
  ...logSettings,
};

export type KmsConfig = ConfigOf<typeof kmsSettings>;

/** How often a replica looks for versions of keys, milliseconds: it has read a next one long before that seals or signs. */
export function keyPollMs({ keyPrepublishS }: Pick<KmsConfig, 'keyPrepublishS'>): number {
  return Math.max(50, (keyPrepublishS * 1000) / 6);
}

/** Shorter, a key signs before everybody knows it who keeps the published ones, or whose clock is a little late. */
export const PREPUBLISH_LEAST_S = 60;

export function isPrepublishedLongEnough({ keyPrepublishS }: Pick<KmsConfig, 'keyPrepublishS'>): boolean {
  return keyPrepublishS >= PREPUBLISH_LEAST_S;
}

/** @throws ColonnadeError `misconfigured` naming every fault */
export function readKmsConfig(env: Readonly<Record<string, string | undefined>>): KmsConfig {
  return readConfig(kmsSettings, env);
}
