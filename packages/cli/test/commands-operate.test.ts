import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe } from 'node:test';
import { connectBus } from '@colonnade/bus';
import { auditDeadSubject, auditSubject, encode, startCall, zDeadLetter } from '@colonnade/contracts';
import { fromPlain, toPlain } from '@colonnade/value';
import { MongoClient } from 'mongodb';
import { startWebhook, writeKubeconfig } from '../../../test/support/fake-webhook.ts';
import { mongoForTests, skipWithoutMongo } from '../../../test/support/mongo.ts';
import { stackForTests, type TestStack, writeEstate } from '../../../test/support/stack.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { OPERATE_STEPS } from './steps/operate.ts';
import { bundledCli, type Cli, environmentOf, MODES, privateFile, testSteps } from './support.ts';

const skip = await skipWithoutMongo();

/** A database with one document as Salt.Box keeps them. */
async function saltBox(cli: Cli, owned: AsyncDisposableStack, kept: Record<string, string>): Promise<void> {
  if (skip !== false) return;
  const mongo = owned.use(await mongoForTests());
  const { url, user, password } = mongo;
  for (const mode of MODES) {
    const database = mongo.freshDatabase();
    const auth = user === undefined ? {} : { auth: { username: user, password: password ?? '' } };
    await using client = new MongoClient(url, auth);
    const pillar = {
      tgt_type: 'root',
      tgt_id: 'root',
      name: 'a',
      pillarenv: 'base',
      value: 1,
      is_secret: false,
    };
    await client
      .db(database)
      .collection('pillars')
      .insertOne({ ...pillar, created_by: 'eve' });
    const [hosts = '', options = ''] = url.split('/?');
    kept[`mongo-${mode}`] = `${hosts.replace(/\/$/u, '')}/${database}${options === '' ? '' : `?${options}`}`;
  }
  if (user === undefined) return;
  kept.mongoUser = user;
  kept.mongoPassword = await privateFile(cli.dir, 'mongo-password', password ?? '');
}

const POISON =
  '{"apiVersion":"audit.k8s.io/v1","auditID":"poison-1","kind":"Event","level":"None","stage":"Panic"}';

/** As audit-sink writes one down. */
async function writeDeadLetter({ stack }: TestStack): Promise<void> {
  await using sink = await connectBus({
    ...{ servers: stack.nats.url, user: 'audit-sink', nkeySeed: stack.secrets.busNkeys['audit-sink'].seed },
    ...{ name: 'test', logger: { info: () => {}, warn: () => {}, error: () => {} } },
  });
  const letter = {
    reason: 'refused_by_webhook',
    ...{ detail: 'HTTP 422', seq: 7, subject: auditSubject('pillar-api') },
    payload_b64: Buffer.from(POISON).toString('base64'),
  } as const;
  const message = {
    subject: auditDeadSubject('webhook'),
    msgId: 'test',
    payload: encode(zDeadLetter, letter),
  };
  await sink.publishDurable(message, startCall(5000));
}

/** A service outside publishes what its schema refuses. */
async function publishBadEvent({ api }: TestStack): Promise<void> {
  const call = async (method: string, url: string, body: unknown, token?: string) =>
    toPlain(
      (await api.send(method, url, fromPlain(body), token ? { authorization: `Bearer ${token}` } : {}))
        .value ?? null,
    ) as { token: string; status: number };
  const schema = { properties: { total: { type: 'integer' } } };
  await call('POST', '/services', { id: 'shop', types: [{ type: 'order.placed', schema }] });
  const { token: once } = await call('POST', '/services/shop/enrolments', {});
  const { token } = await call('POST', '/identity/enrol', {}, once);
  const event = { id: '1', type: 'order.placed', data: { total: 'much' } };
  assert.equal((await call('POST', '/events', event, token)).status, 422);
}

describe('commands beside the estate', () => {
  const owned = new AsyncDisposableStack();
  const kept: Record<string, string> = {};
  let cli: Cli;
  before(async () => {
    const stack: TestStack = owned.use(await stackForTests());
    await writeEstate(stack.api).pillar({ tgt_type: 'root' }, 'motd', 'hello');
    cli = owned.use(await bundledCli(environmentOf(stack)));
    const webhook = owned.use(await startWebhook());
    kept.webhook = await writeKubeconfig(cli.dir, { server: webhook.url });
    kept.url = stack.stack.api.url;
    kept.tokenFile = path.join(stack.stack.dir, 'secrets', 'admin-token');
    kept.store = stack.stack.storePath;
    await saltBox(cli, owned, kept);
    await writeDeadLetter(stack);
    await publishBadEvent(stack);
    await waitFor('the record of the write', async () => {
      const { stdout } = await cli.pipe(['audit', 'find', '--verb', 'create', '--resource', 'pillars']);
      return stdout.includes('ResponseComplete');
    });
  });
  after(() => owned.disposeAsync());

  testSteps(() => cli, OPERATE_STEPS, {
    kept: (mode) => ({ ...kept, mongo: kept[`mongo-${mode}`] ?? '' }),
    skip: ({ command }) => (command === 'adopt' ? skip : false),
  });
});
