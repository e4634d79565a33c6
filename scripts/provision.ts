// What an operator runs once on a real installation, before the services start.
import { createHash, randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { connectBus } from '../packages/bus/src/index.ts';
import { ColonnadeError, mergerAclRules } from '../packages/contracts/src/index.ts';
import {
  optionalSetting,
  readConfig,
  readPrivateText,
  secretSetting,
  setting,
  zCount,
  zFlag,
  zPath,
  zText,
} from '../packages/service-kit/src/index.ts';

const usage = `node scripts/provision.ts COMMAND

  streams              makes or updates the NATS streams and their consumers, as the user "provisioner"
                       environment: NATS_URL, NATS_NKEY_SEED_FILE (or NATS_NKEY_SEED), NATS_CA_FILE,
                       EVENTS_MAX_MIB (default 1024), AUDIT_MAX_MIB (default 4096), NATS_REPLICAS (1 or 3, default 1),
                       AUDIT_WEBHOOK (true where audit-sink has a webhook, default false)
  admin-token          prints a new API token for BOOTSTRAP_TOKEN_FILE, which pillar-api and crypto-kms both read
  redis-admin-acl      prints the line of an administrator of Redis, who may load users.acl again
                       environment: REDIS_PASSWORD_FILE
  redis-merger-acl     prints the line of the mergers' Redis user for users.acl
                       environment: REDIS_PASSWORD_FILE

Examples
  NATS_URL=tls://nats.example:4222 NATS_NKEY_SEED_FILE=/etc/colonnade/nats-provisioner.nk NATS_CA_FILE=/etc/colonnade/ca.crt \\
    node scripts/provision.ts streams
  REDIS_PASSWORD_FILE=/etc/colonnade/redis-merger node scripts/provision.ts redis-merger-acl >> users.acl

Exit codes: 0 done, 1 failed, 2 unknown command
`;

const MIB = 1024 * 1024;

async function makeStreams(): Promise<void> {
  const settings = {
    url: setting('NATS_URL', zText, { help: 'nats:// or tls:// address' }),
    nkeySeed: secretSetting('NATS_NKEY_SEED', { help: 'nkey seed of the user provisioner' }),
    caFile: optionalSetting('NATS_CA_FILE', zPath, { help: 'CA of the NATS servers' }),
    eventsMib: setting('EVENTS_MAX_MIB', zCount, { help: 'space of EVENTS', default: '1024' }),
    auditMib: setting('AUDIT_MAX_MIB', zCount, { help: 'space of AUDIT', default: '4096' }),
    webhook: setting('AUDIT_WEBHOOK', zFlag, { help: 'keep records for a webhook', default: 'false' }),
    replicas: setting('NATS_REPLICAS', zCount, { help: 'copies of each stream', default: '1' }),
  };
  const config = readConfig(settings, process.env);
  const say = (fields: object, message: string) =>
    void process.stderr.write(`${message} ${JSON.stringify(fields)}\n`);
  await using bus = await connectBus({
    servers: config.url,
    user: 'provisioner',
    nkeySeed: config.nkeySeed.reveal(),
    name: 'provision',
    caFile: config.caFile,
    logger: { info: say, warn: say, error: say },
  });
  await bus.provisionStreams({
    maxEventsBytes: config.eventsMib * MIB,
    maxAuditBytes: config.auditMib * MIB,
    auditWebhook: config.webhook,
    replicas: config.replicas,
  });
  process.stdout.write('streams and consumers are as they should be\n');
}

function redisPassword(): string {
  const file = process.env.REDIS_PASSWORD_FILE;
  if (!file)
    throw new ColonnadeError(
      'misconfigured',
      'REDIS_PASSWORD_FILE: missing (a file of mode 0600 with the password)',
    );
  return readPrivateText(file, 'REDIS_PASSWORD_FILE');
}

function printAdminAcl(): void {
  const hash = createHash('sha256').update(redisPassword()).digest('hex');
  process.stdout.write(`user colonnade-admin on #${hash} allkeys allchannels +@all\n`);
}

function printAdminToken(): void {
  process.stdout.write(`col_${randomBytes(8).toString('hex')}_${randomBytes(32).toString('base64url')}\n`);
}

function printMergerAcl(): void {
  const password = redisPassword();
  process.stdout.write(`user pillar-merger ${mergerAclRules(password).join(' ')}\n`);
}

const commands: Readonly<Record<string, () => Promise<void> | void>> = {
  streams: makeStreams,
  'admin-token': printAdminToken,
  'redis-admin-acl': printAdminAcl,
  'redis-merger-acl': printMergerAcl,
};

const { values, positionals } = parseArgs({
  options: { help: { type: 'boolean' } },
  allowPositionals: true,
  strict: false,
});
const command = commands[positionals[0] ?? ''];
if (values.help || command === undefined) {
  process.stdout.write(usage);
  process.exitCode = values.help ? 0 : 2;
} else {
  try {
    await command();
  } catch (thrown) {
    process.stderr.write(`${thrown instanceof Error ? thrown.message : String(thrown)}\n`);
    process.exitCode = 1;
  }
}
