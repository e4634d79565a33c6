import { pathToFileURL } from 'node:url';
import {
  type ConfigOf,
  optionalSecretSetting,
  optionalSetting,
  setting,
  zPath,
  zText,
} from '@colonnade/service-kit';
import { type EstatePlace, parsePlace } from './place.ts';

/** The settings of a service that opens an estate. */
export const storeSettings = {
  store: setting('STORE_URL', parsePlace, {
    help: 'the estate: `sqlite:///path`, or `mongodb://host:port,…/database` of a replica set; `STORE_PATH=/path` is short for the first',
  }),
  storeUser: optionalSetting('STORE_USER', zText, { help: 'user of MongoDB' }),
  storePassword: optionalSecretSetting('STORE_PASSWORD', { help: 'password of that user' }),
  storeAuthDatabase: optionalSetting('STORE_AUTH_DATABASE', zText, {
    help: 'database that knows the user; unset: `admin`',
  }),
  storeCaFile: optionalSetting('STORE_CA_FILE', zPath, { help: 'CA of MongoDB; set it to speak TLS' }),
  storeCertificateKeyFile: optionalSetting('STORE_CERTIFICATE_KEY_FILE', zPath, {
    help: 'certificate and key for MongoDB (PEM), where it asks for one',
  }),
};

type Env = Readonly<Record<string, string | undefined>>;

/** The environment with `STORE_PATH` turned into the `STORE_URL` it is short for; to be read by `readConfig`. */
export function withStoreUrl(env: Env): Env {
  if (env.STORE_URL || !env.STORE_PATH) return env;
  return { ...env, STORE_URL: `sqlite://${pathToFileURL(env.STORE_PATH).pathname}` };
}

/** The place the settings name, with what it takes to get there. */
export function placeOf(config: ConfigOf<typeof storeSettings>): EstatePlace {
  const { store, storeUser: user, storePassword, storeAuthDatabase: authDatabase } = config;
  if (store.kind === 'sqlite') return store;
  const tls = { caFile: config.storeCaFile, certificateKeyFile: config.storeCertificateKeyFile };
  const isTls = tls.caFile !== undefined || tls.certificateKeyFile !== undefined;
  const account = { user, password: storePassword?.reveal(), authDatabase };
  return { ...store, ...account, ...(isTls ? { tls } : {}) };
}
