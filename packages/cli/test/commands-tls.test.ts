import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { makeCa } from '../../../services/tls-rotator/test/pki.ts';
import {
  applyManifests,
  type Cluster,
  createCluster,
  type Rotator,
  restrictedKubeconfig,
  startRotator,
} from '../../../services/tls-rotator/test/support.ts';
import { skipWithoutKube } from '../../../test/support/kube/find-kube.ts';
import { startKube } from '../../../test/support/kube.ts';
import { type RealBus, startRealBus } from '../../../test/support/real-bus.ts';
import { skipWithout } from '../../../test/support/servers.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { TLS_STEPS } from './steps/tls.ts';
import { bundledCli, type Cli, privateFile, testSteps } from './support.ts';

const skip = skipWithoutKube() || (await skipWithout('nats'));

describe('commands that ask tls-rotator', { skip }, () => {
  const owned = new AsyncDisposableStack();
  let cluster: Cluster;
  let bus: RealBus;
  let cli: Cli;
  let rotator: Rotator;
  before(async () => {
    const dir = owned.use(await tempDir('cli-tls'));
    bus = owned.use(await startRealBus());
    const kube = owned.use(await startKube());
    await applyManifests(kube.call);
    cluster = createCluster(kube.call);
    const ca = makeCa(dir.path, 'ca');
    const leaf = ca.issue('ingress');
    for (const name of ['ingress', 'shop', 'other', 'bare']) await cluster.namespace(name);
    const texts = { 'tls.crt': leaf.cert, 'tls.key': leaf.key };
    await cluster.secret('ingress', { ...texts, 'ca.crt': ca.cert });
    await cluster.secret('shop', texts);
    await cluster.secret('other', { 'tls.crt': 'old', 'tls.key': 'old' });
    rotator = owned.use(
      await startRotator(await restrictedKubeconfig(kube, dir.path), {
        NATS_URL: bus.nats.url,
        NATS_NKEY_SEED: bus.nkeySeedOf('tls-rotator'),
      }),
    );
    const spec = { sourceSecretRef: { namespace: 'ingress', name: 'ingress-tls' }, createIfMissing: true };
    await cluster.apply('common', { ...spec, namespaces: ['shop'] });
    await cluster.apply('held', { ...spec, namespaces: ['bare', 'other'], paused: true });
    for (const [name, reason] of [
      ['common', 'True Rotated'],
      ['held', 'False Paused'],
    ] as const)
      await waitFor(reason, async () => (await cluster.condition(name, 'Ready')) === reason, {
        limitMs: 60_000,
      });
    cli = owned.use(await bundledCli());
    cli.env.COLONNADE_NATS_URL = bus.nats.url;
    cli.env.COLONNADE_NATS_NKEY_FILE = await privateFile(cli.dir, 'operator', bus.nkeySeedOf('operator'));
    await waitFor(
      'the rotator on the bus',
      async () => (await cli.pipe(['tls', 'status', 'common'])).code === 0,
    );
  });
  after(() => owned.disposeAsync());

  testSteps(() => cli, TLS_STEPS);

  test('plan has written nothing', async () => {
    assert.equal(await cluster.textsOf('bare'), undefined);
    assert.equal((await cluster.textsOf('other'))?.['tls.crt'], 'old');
  });

  test('one that is not there is told, with the exit code of that', async () => {
    for (const words of [['status'], ['plan']])
      assert.equal((await cli.pipe(['tls', ...words, 'nobody'])).code, 3, words.join());
  });

  test('status misses a rotator that is away only where one is expected, and tls then says that nobody answers', async () => {
    const missing = async (...args: string[]) => {
      const { stdout } = await cli.pipe(['status', '--json', ...args]);
      return (JSON.parse(stdout) as { missing: string[] }).missing.includes('tls-rotator');
    };
    // Somebody has to be there: a bus without any service is another fault.
    const sink = await bus.as('audit-sink');
    owned.use(await sink.serve({ name: 'audit-sink', version: '0.1.0', description: 'stands in' }, []));
    assert.equal(await missing('--expect', 'tls-rotator'), false);
    await rotator.service[Symbol.asyncDispose]();
    assert.equal(await missing('--expect', 'tls-rotator'), true);
    assert.equal(await missing(), false);
    const { code, stderr } = await cli.pipe(['tls', 'status']);
    assert.equal(code, 6, stderr);
  });
});
