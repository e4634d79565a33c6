import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { skipWithoutKube } from '../../../test/support/kube/find-kube.ts';
import { type Kube, startKube } from '../../../test/support/kube.ts';
import { type TempDir, tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type Authority, makeCa } from './pki.ts';
import {
  applyManifests,
  type Cluster,
  createCluster,
  must,
  type Rotator,
  restrictedKubeconfig,
  startRotator,
} from './support.ts';

type Material = { 'tls.crt': string; 'tls.key': string; 'ca.crt': string };

describe('Secrets on a real API server, by the account of rbac.yaml', { skip: skipWithoutKube() }, () => {
  let dir: TempDir;
  let kube: Kube;
  let cluster: Cluster;
  let rotator: Rotator;
  let ca: Authority;
  let material: Material;
  before(async () => {
    dir = await tempDir('secrets');
    ca = makeCa(dir.path, 'ca');
    material = fresh();
    kube = await startKube();
    await applyManifests(kube.call);
    cluster = createCluster(kube.call);
    await cluster.namespace('ingress');
    await cluster.secret('ingress', material, { type: 'kubernetes.io/tls' });
    rotator = await startRotator(await restrictedKubeconfig(kube, dir.path));
  });
  after(async () => {
    await rotator?.[Symbol.asyncDispose]();
    await kube?.[Symbol.asyncDispose]();
    await dir?.[Symbol.asyncDispose]();
  });

  function fresh(): Material {
    const middle = ca.intermediate('middle');
    const leaf = middle.issue('ingress');
    return { 'tls.crt': leaf.cert + middle.cert, 'tls.key': leaf.key, 'ca.crt': ca.cert };
  }
  const spec = (changes = {}) => ({
    sourceSecretRef: { namespace: 'ingress', name: 'ingress-tls' },
    namespaces: ['*'],
    ...changes,
  });
  const until = (name: string, type: string, expected: string) =>
    waitFor(
      `${name} ${type} ${expected}`,
      async () => {
        const is = await cluster.condition(name, type);
        if (is !== expected) throw new Error(`${is}: ${JSON.stringify(await cluster.status(name))}`);
        return true;
      },
      { limitMs: 60_000 },
    );
  const untilEqual = (namespace: string, name?: string) =>
    waitFor(
      `the certificate in ${namespace}`,
      async () => (await cluster.textsOf(namespace, name))?.['tls.crt'] === material['tls.crt'],
      { limitMs: 60_000 },
    );
  const versions = async (names: readonly string[]) =>
    Promise.all(
      names.map(
        async (n) => ((await cluster.objectOf(n)).metadata as { resourceVersion: string }).resourceVersion,
      ),
    );

  test('existing ones are brought to the source, in two fields and nothing else; missing ones are counted', async () => {
    await cluster.namespace('shop');
    await cluster.namespace('empty');
    await cluster.secret('shop', { 'tls.crt': 'old', 'tls.key': 'old', extra: 'mine' }, { type: 'Opaque' });
    await cluster.apply('common', spec());
    await until('common', 'Ready', 'True Rotated');
    const shop = await cluster.textsOf('shop');
    assert.deepEqual(shop, { 'tls.crt': material['tls.crt'], 'tls.key': material['tls.key'], extra: 'mine' });
    const object = await cluster.objectOf('shop');
    assert.equal(object.type, 'Opaque');
    assert.equal((object.metadata as { annotations?: unknown }).annotations, undefined);
    const { targets, source } = await cluster.status('common');
    // default, kube-system, kube-public, kube-node-lease, colonnade and empty have none.
    assert.equal(targets?.missing, 6);
    assert.equal((targets?.updated ?? 0) + (targets?.unchanged ?? 0), 1);
    assert.ok(source?.notAfter);
    assert.ok(
      rotator.log().some((l) => l.msg === 'target missing' && l.namespace === 'empty' && l.level === 'debug'),
    );
    assert.equal(await cluster.textsOf('empty'), undefined);
  });

  test('with createIfMissing they are made, also in a namespace that comes later', async () => {
    await cluster.change('common', { createIfMissing: true });
    await untilEqual('empty');
    await cluster.namespace('later');
    await untilEqual('later');
    const made = await cluster.objectOf('later');
    assert.equal(made.type, 'kubernetes.io/tls');
    const { annotations } = made.metadata as { annotations: Record<string, string> };
    assert.match(annotations['tls.dropapp.ru/created-for'] ?? '', /^[0-9a-f-]{36}$/u);
  });

  test('a new source goes everywhere; a pass with nothing to change writes nothing', async () => {
    material = fresh();
    await cluster.setSecret('ingress', material);
    for (const namespace of ['shop', 'empty', 'later', 'default']) await untilEqual(namespace);
    await until('common', 'Ready', 'True Rotated');
    await waitFor('a quiet pass', async () => (await cluster.status('common')).targets?.updated === 0);
    const all = ['shop', 'empty', 'later', 'default'];
    const before = await versions(all);
    const passes = () => rotator.service.url && metric('colonnade_tls_passes_total{outcome="ok"');
    const count = await passes();
    // Every namespace that is touched is a reason to look.
    await cluster.merge('/api/v1/namespaces/shop', { metadata: { labels: { looked: 'at' } } });
    await waitFor('another pass', async () => (await passes()) > count);
    assert.deepEqual(await versions(all), before);
  });

  const metric = async (start: string) => {
    const text = await (await fetch(`${rotator.service.url}/metrics`)).text();
    const line = text.split('\n').find((l) => l.startsWith(start));
    return Number(line?.split(' ').at(-1) ?? '0');
  };

  test('a bad source changes nothing, and the condition names the check', async () => {
    const good = material;
    const [before] = await versions(['shop']);
    const other = fresh();
    const bad: [Partial<Record<keyof Material, string | null>>, string, RegExp][] = [
      [{ 'tls.key': other['tls.key'] }, 'False SourceInvalid', /^key: /u],
      [
        {
          'tls.crt': `${good['tls.crt'].split('-----END CERTIFICATE-----\n')[0]}-----END CERTIFICATE-----\n`,
        },
        'False SourceInvalid',
        /^chain: /u,
      ],
      [{ 'tls.crt': good['tls.crt'].slice(0, 300) }, 'False SourceInvalid', /^pem: /u],
      [{ 'ca.crt': good['tls.crt'] }, 'False SourceInvalid', /^ca-bundle: /u],
    ];
    for (const [change, expected, message] of bad) {
      await cluster.setSecret('ingress', { ...good, ...change });
      await waitFor(String(message), async () =>
        message.test(
          (await cluster.status('common')).conditions.find((c) => c.type === 'Ready')?.message ?? '',
        ),
      );
      assert.equal(await cluster.condition('common', 'Ready'), expected);
      assert.equal((await cluster.condition('common', 'Degraded')).split(' ')[0], 'True');
    }
    await cluster.remove(cluster.secretPath('ingress'));
    await until('common', 'Ready', 'False SourceMissing');
    await cluster.secret('ingress', { 'tls.crt': good['tls.crt'] });
    await until('common', 'Ready', 'False SourceIncomplete');
    assert.deepEqual(await versions(['shop']), [before]);
    await cluster.setSecret('ingress', good);
    await until('common', 'Ready', 'True Rotated');
    assert.deepEqual(await versions(['shop']), [before]);
    const told = JSON.stringify(await cluster.status('common')) + JSON.stringify(rotator.log());
    for (const text of [good['tls.key'], other['tls.key']]) assert.ok(!told.includes(text.slice(40, 80)));
  });

  test('one that is deleted or edited comes back; the third fight in ten minutes is left alone', async () => {
    await cluster.remove(cluster.secretPath('later'));
    await untilEqual('later');
    await cluster.setSecret('later', { 'tls.crt': 'edited' });
    await untilEqual('later');
    await cluster.setSecret('later', { 'tls.key': 'edited' });
    await waitFor(
      'the key',
      async () => (await cluster.textsOf('later'))?.['tls.key'] === material['tls.key'],
    );
    await cluster.setSecret('later', { 'tls.crt': 'again' });
    await until('common', 'SecretsSynced', 'False Contested');
    assert.equal((await cluster.textsOf('later'))?.['tls.crt'], 'again');
    const { targets, failures } = await cluster.status('common');
    assert.equal(targets?.contested, 1);
    assert.equal(failures?.[0]?.namespace, 'later');
    await cluster.setSecret('later', material);
    await until('common', 'SecretsSynced', 'True Synced');
  });

  test('one that is immutable, or has no room, is counted with the reason, and the others are written', async () => {
    await cluster.namespace('stone');
    await untilEqual('stone');
    await cluster.merge(cluster.secretPath('stone'), { immutable: true });
    await cluster.namespace('full');
    await untilEqual('full');
    await cluster.merge(cluster.secretPath('full'), {
      data: { 'tls.crt': 'YQ==', big: Buffer.alloc(1_047_900, 97).toString('base64') },
    });
    material = fresh();
    await cluster.setSecret('ingress', material);
    await until('common', 'SecretsSynced', 'False TargetsFailed');
    await untilEqual('shop');
    await waitFor('both', async () => (await cluster.status('common')).targets?.failed === 2);
    const { failures = [] } = await cluster.status('common');
    assert.match(failures.find((f) => f.namespace === 'stone')?.reason ?? '', /immutable/u);
    assert.match(
      failures.find((f) => f.namespace === 'full')?.reason ?? '',
      /413|422|400|too large|Too long/iu,
    );
    await cluster.remove(cluster.secretPath('stone'));
    await cluster.remove(cluster.secretPath('full'));
    await until('common', 'SecretsSynced', 'True Synced');
  });

  test('of two that claim one Secret the younger waits, and has it when the older goes', async () => {
    await cluster.apply('younger', spec({ namespaces: ['shop'] }));
    await until('younger', 'SecretsSynced', 'False Conflict');
    assert.equal(await cluster.condition('common', 'Ready'), 'True Rotated');
    await cluster.removeIngress('common');
    await until('younger', 'Ready', 'True Rotated');
    assert.ok(await cluster.textsOf('later'), 'Retain is the default');
    await cluster.removeIngress('younger');
    await waitFor('its end', async () => !(await cluster.ingressThere('younger')));
  });

  test('with deletionPolicy Delete only what was made here goes, with its namespace from the list or with the whole', async () => {
    for (const name of ['left', 'right']) await cluster.namespace(name);
    await cluster.namespace('foreign');
    await cluster.secret('foreign', { 'tls.crt': 'x', 'tls.key': 'x' });
    await cluster.apply(
      'tidy',
      spec({ namespaces: ['left', 'right', 'foreign'], createIfMissing: true, deletionPolicy: 'Delete' }),
    );
    for (const name of ['left', 'right', 'foreign']) await untilEqual(name);
    await cluster.change('tidy', { namespaces: ['left', 'foreign'] });
    await waitFor('the one that left the list', async () => (await cluster.textsOf('right')) === undefined);
    assert.ok(await cluster.textsOf('left'));
    await cluster.removeIngress('tidy');
    await waitFor('its end', async () => !(await cluster.ingressThere('tidy')));
    assert.equal(await cluster.textsOf('left'), undefined);
    assert.ok(await cluster.textsOf('foreign'), 'somebody else made it');
    assert.ok(await cluster.textsOf('shop'), 'another IngressTLS made it');
  });

  test('what is not allowed is refused, by the CRD or by the rotator', async () => {
    const refused = async (changes: object) => {
      const { status, value } = await kube.call('POST', '/apis/tls.dropapp.ru/v1alpha1/ingresstlses', {
        body: JSON.stringify({
          apiVersion: 'tls.dropapp.ru/v1alpha1',
          kind: 'IngressTLS',
          metadata: { name: 'bad' },
          spec: spec(changes),
        }),
      });
      assert.equal(
        status,
        422,
        JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? Number(v) : v)),
      );
    };
    const ssh = { keySecretRef: { name: 'k' }, knownHostsSecretRef: { name: 'h' } };
    await refused({ namespaces: [] });
    await refused({ namespaces: ['Not A Name'] });
    await refused({ sourceSecretRef: { name: 'x' } });
    await refused({ apiServerOIDC: { enabled: true } });
    await refused({ apiServerOIDC: { enabled: true, ssh, destCAPath: '/etc/kubernetes/../passwd' } });
    await refused({ apiServerOIDC: { enabled: true, ssh, destCAPath: '/etc/kubernetes/$(id)' } });
    await refused({ apiServerOIDC: { enabled: true, ssh: { ...ssh, user: 'root; id' } } });
    await refused({
      apiServerOIDC: {
        enabled: true,
        ssh,
        nodes: { matchLabels: { a: 'b' }, list: [{ name: 'n', address: '10.0.0.1' }] },
      },
    });
    await cluster.namespace('elsewhere');
    await cluster.apply('outside', {
      ...spec(),
      sourceSecretRef: { namespace: 'elsewhere', name: 'ingress-tls' },
    });
    await until('outside', 'Ready', 'False NotAllowed');
    await cluster.removeIngress('outside');
  });

  test('a Secret that rbac.yaml does not name is told of, instead of waited for', async () => {
    await cluster.apply('unnamed', spec({ secretName: 'unnamed' }));
    await until('unnamed', 'SecretsSynced', 'False NotPermitted');
    assert.equal(await cluster.condition('unnamed', 'Degraded'), 'True NotPermitted');
    const { conditions } = await cluster.status('unnamed');
    assert.match(conditions.find((c) => c.type === 'Ready')?.message ?? '', /unnamed .*rbac\.yaml/u);
    await cluster.change('unnamed', { sourceSecretRef: { namespace: 'ingress', name: 'unnamed' } });
    await until('unnamed', 'SecretsSynced', 'False SourceForbidden');
    await cluster.removeIngress('unnamed');
    await waitFor('its end', async () => !(await cluster.ingressThere('unnamed')));
  });

  test('the account can read no other Secret, and make no Lease of another name', async () => {
    const { status: made } = await must(
      kube.call,
      'POST',
      '/api/v1/namespaces/colonnade/serviceaccounts/tls-rotator/token',
      { spec: {} },
    );
    const { token } = made as { token: string };
    const may = async (method: string, where: string) => (await kube.call(method, where, { token })).status;
    assert.equal(await may('GET', '/api/v1/secrets?fieldSelector=metadata.name%3Dingress-tls'), 200);
    assert.equal(await may('GET', '/api/v1/secrets'), 403);
    assert.equal(await may('GET', '/api/v1/secrets?fieldSelector=metadata.name%3Dother'), 403);
    assert.equal(await may('GET', '/api/v1/namespaces/colonnade/secrets'), 403);
    assert.equal(await may('DELETE', '/apis/tls.dropapp.ru/v1alpha1/ingresstlses/x'), 403);
    assert.equal(await may('GET', '/api/v1/namespaces/default/configmaps'), 403);
  });

  test('a second replica writes nothing while the first leads, and takes over when it is gone', async () => {
    await using second = await startRotator(await restrictedKubeconfig(kube, dir.path));
    await cluster.apply('handed', spec({ namespaces: ['shop'] }));
    await until('handed', 'Ready', 'True Rotated');
    assert.ok(!second.log().some((l) => l.msg === 'target written'));
    await rotator[Symbol.asyncDispose]();
    material = fresh();
    await cluster.setSecret('ingress', material);
    await untilEqual('shop');
    assert.ok(second.log().some((l) => l.msg === 'target written'));
  });
});
