import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type TempDir, tempDir } from '../../../../test/support/temp.ts';
import { type Authority, type Issued, makeCa, runTool } from '../../test/pki.ts';
import { bundleHolds, checkSource, joinBundles, type SourceMaterial } from './certificates.ts';

describe('the source', () => {
  let dir: TempDir;
  let root: Authority;
  let other: Authority;
  let middle: Authority;
  let leaf: Issued;
  let good: SourceMaterial;
  before(async () => {
    dir = await tempDir('certificates');
    root = makeCa(dir.path, 'root');
    other = makeCa(dir.path, 'other');
    middle = root.intermediate('middle');
    leaf = middle.issue('ingress');
    good = { crt: leaf.cert + middle.cert, key: leaf.key, ca: root.cert };
  });
  after(() => dir[Symbol.asyncDispose]());

  const faultsOf = (material: SourceMaterial, nowMs = Date.now()) => {
    const verdict = checkSource(material, nowMs);
    if (verdict.ok) return [];
    for (const { reason } of verdict.faults) assert.ok(!reason.includes(leaf.key.slice(40, 60)));
    return verdict.faults.map(({ check, reason }) => `${check}: ${reason}`);
  };

  test('as the seed wants it is taken', () => {
    const verdict = checkSource(good, Date.now());
    assert.ok(verdict.ok);
    assert.equal(verdict.facts.caBundle, `${root.cert.trim()}\n`);
    assert.ok(verdict.facts.notAfterMs > Date.now());
    assert.match(verdict.facts.hash, /^[0-9a-f]{64}$/u);
    assert.deepEqual(
      faultsOf({ crt: leaf.cert + middle.cert + root.cert, key: leaf.key, ca: root.cert }),
      [],
      'with its root',
    );
    assert.deepEqual(faultsOf({ crt: leaf.cert + middle.cert, key: leaf.key }), [], 'without a bundle');
    assert.deepEqual(faultsOf({ ...good, crt: `# ours\r\n${good.crt.replaceAll('\n', '\r\n')}` }), []);
    assert.deepEqual(faultsOf({ ...good, ca: root.cert + other.cert + root.cert }), [], 'one of several CAs');
  });

  test('of any kind of key is taken', () => {
    const pkcs8 = runTool('openssl', 'pkcs8', '-topk8', '-nocrypt', '-in', leaf.keyFile);
    assert.deepEqual(faultsOf({ ...good, key: pkcs8 }), []);
  });

  test('that is wrong is refused, and the check is named', () => {
    const stranger = other.issue('ingress');
    const table: [string, Partial<SourceMaterial>, RegExp][] = [
      ['no PEM', { crt: 'hello' }, /^pem: tls\.crt holds no PEM block/u],
      ['empty', { crt: '', key: '' }, /^pem/u],
      ['cut off', { crt: good.crt.slice(0, -40) }, /^pem: tls\.crt is cut off/u],
      [
        'garbled',
        { crt: `-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n` },
        /^pem: block 1/u,
      ],
      [
        'a key among certificates',
        { crt: leaf.cert + leaf.key },
        /^pem: block 2 of tls\.crt is a private key/u,
      ],
      ['another key', { key: stranger.key }, /^key: tls\.key is not the key/u],
      ['no key', { key: leaf.cert }, /^key: tls\.key does not hold exactly one/u],
      ['two keys', { key: leaf.key + leaf.key }, /^key/u],
      ['without its intermediate', { crt: leaf.cert }, /^chain: the last certificate.*intermediate/u],
      ['in the wrong order', { crt: middle.cert + leaf.cert }, /^(key|chain)/u],
      ['a chain of someone else', { crt: leaf.cert + other.cert }, /^chain: certificate 1/u],
      ['a second leaf', { crt: leaf.cert + stranger.cert }, /^chain/u],
      ['another CA', { ca: other.cert }, /^chain/u],
      ['a bundle that is no CA', { ca: leaf.cert + root.cert }, /^ca-bundle: certificate 1/u],
      ['an empty bundle', { ca: '' }, /^pem: the CA bundle holds no PEM block/u],
      ['far too large', { crt: 'x'.repeat(300_000) }, /^pem: tls\.crt is larger/u],
    ];
    for (const [what, change, expected] of table)
      assert.match(faultsOf({ ...good, ...change })[0] ?? 'taken', expected, what);
  });

  test('expires with the first of its certificates, be it of the chain or of the bundle', () => {
    const long = root.issue('long', { notAfter: '20990101000000Z' });
    const verdict = checkSource({ crt: long.cert, key: long.key, ca: root.cert }, Date.now());
    assert.ok(verdict.ok);
    const days = (verdict.facts.notAfterMs - Date.now()) / 86_400_000;
    assert.ok(days > 29 && days <= 30, `${days}`);
  });

  test('brings a key for the nodes only if it is one, and nothing beside it', () => {
    for (const key of [leaf.key, runTool('openssl', 'ecparam', '-name', 'prime256v1', '-genkey')])
      assert.deepEqual(faultsOf({ ...good, extraKey: key }), []);
    for (const [text, expected] of [
      ['apiVersion: v1\nkind: Pod\n', /^key: the key of writeKey does not hold exactly one/u],
      [`kind: Pod\n${leaf.key}`, /^key: the key of writeKey holds something else/u],
      [leaf.cert, /^key: the key of writeKey/u],
    ] as const)
      assert.match(faultsOf({ ...good, extraKey: text })[0] ?? 'taken', expected);
  });

  test('that is out of date is refused', () => {
    const expired = root.issue('late', { notAfter: '20210101000000Z' });
    const [fault] = faultsOf({ crt: expired.cert, key: expired.key, ca: root.cert });
    assert.match(fault ?? '', /^dates: certificate 1 of tls\.crt expired/u);
    assert.match(faultsOf(good, Date.now() - 5 * 86_400_000)[0] ?? '', /^dates: .*not valid before/u);
    assert.match(
      faultsOf(good, Date.now() + 25 * 86_400_000)[0] ?? '',
      /^dates: certificate 1 of tls.crt expired/u,
    );
    assert.match(
      faultsOf(good, Date.now() + 40 * 86_400_000).at(-1) ?? '',
      /^dates: certificate 1 of the CA bundle/u,
    );
  });

  test('bundles are joined: the new first, nothing twice, what cannot be read left out', () => {
    const joined = joinBundles(root.cert, `rubbish\n${other.cert}${root.cert}`);
    assert.equal(joined, `${root.cert.trim()}\n${other.cert.trim()}\n`);
    assert.ok(bundleHolds(joined, root.cert));
    assert.ok(bundleHolds(joined, other.cert));
    assert.ok(!bundleHolds(root.cert, joined));
    const many = Array.from({ length: 70 }, (_, i) => `${makeCa(dir.path, `many ${i}`).cert.trim()}\n`);
    const all = joinBundles(root.cert, many.join(''));
    assert.ok(
      many.every((one) => bundleHolds(all, one)),
      'none is left out of a large one',
    );
  });
});
