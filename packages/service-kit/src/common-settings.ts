import { optionalSetting, secretSetting, setting } from './config.ts';
import { LOG_LEVELS } from './logger.ts';
import { oneOf, zPath, zPort, zText } from './parsers.ts';

/** How a service reaches NATS; what `connectService` of `packages/bus` takes. */
export function busSettings(user: string) {
  return {
    natsUrl: setting('NATS_URL', zText, {
      help: 'one or several `nats://host:port`, separated by commas',
      default: 'nats://127.0.0.1:4222',
    }),
    natsNkeySeed: secretSetting('NATS_NKEY_SEED', { help: `nkey seed of the NATS user \`${user}\`` }),
    natsCaFile: optionalSetting('NATS_CA_FILE', zPath, {
      help: 'CA of the NATS servers; set it to speak TLS',
    }),
  };
}

/** Health and metrics of a service that has no HTTP of its own. */
export function opsSettings(defaultPort: number, serves = 'health and metrics') {
  return {
    opsHost: setting('OPS_HOST', zText, { help: `address of ${serves}`, default: '127.0.0.1' }),
    opsPort: setting('OPS_PORT', zPort, {
      help: 'its port; 0: any free one',
      default: String(defaultPort),
    }),
  };
}

export const logSettings = {
  logLevel: setting('LOG_LEVEL', oneOf(LOG_LEVELS), { help: 'how much is logged', default: 'info' }),
};
