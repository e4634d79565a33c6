import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createUserNkey } from '@colonnade/bus';
import {
  kmsIssueMaster,
  kmsOpenForApi,
  kmsOpenForMerger,
  kmsSeal,
  kmsVerifyForApi,
  rootTarget,
} from '@colonnade/contracts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { call, type PreparedKms, prepareKms, rejects } from './support.ts';

let kms: PreparedKms;
before(async () => {
  kms = await prepareKms();
});
after(() => kms[Symbol.asyncDispose]());

const context = {
  tgt_type: rootTarget.tgtType,
  tgt_id: rootTarget.tgtId,
  pillarenv: rootTarget.pillarenv,
  name: 'x',
};

describe('without a KEK the service runs', () => {
  test('and answers every seal and open key_not_configured', async () => {
    await using service = await kms.start({ PILLARS_KEK_B64: undefined });
    assert.equal((await fetch(`${service.url}/readyz`)).status, 200);
    const api = await kms.bus.as('pillar-api');
    const merger = await kms.bus.as('pillar-merger');
    const sealed = await api.request(kmsSeal, { items: [{ context, value: 1n }] }, call());
    assert.ok(sealed.items[0]?.ok === false);
    assert.equal(sealed.items[0].error.code, 'key_not_configured');
    assert.match(sealed.items[0].error.message, /^PillarEncryptionKeyNotConfigured: /u);
    const { token } = await api.request(
      kmsIssueMaster,
      await kms.granted(kmsIssueMaster, { master: 'm1', lifetime_s: 60 }),
      call(),
    );
    const opened = await merger.request(
      kmsOpenForMerger,
      { token, master: 'm1', minion_id: 'a', items: [{ context, enc: {} }] },
      call(),
    );
    assert.ok(opened.items[0]?.ok === false);
    assert.equal(opened.items[0].error.code, 'key_not_configured');
    const opening = await kms.granted(kmsOpenForApi, { context, enc: {} });
    await rejects(api.request(kmsOpenForApi, opening, call()), 'key_not_configured');
    const verifying = await kms.granted(kmsVerifyForApi, { context, enc: {} });
    await rejects(api.request(kmsVerifyForApi, verifying, call()), 'key_not_configured');
  });
});

describe('refuses to start', () => {
  const table: [string, Record<string, string | undefined>, RegExp][] = [
    [
      'a KEK of 31 bytes',
      { PILLARS_KEK_B64: randomBytes(31).toString('base64') },
      /31 bytes, the KEK is exactly 32; make one with: python -c/u,
    ],
    ['a KEK that is no base64', { PILLARS_KEK_B64: 'ä' }, /not standard base64/u],
    [
      'a KEK file that is not there',
      { PILLARS_KEK_B64: undefined, PILLARS_KEK_FILE: '/proc/absent/file' },
      /cannot be read/u,
    ],
    ['two KEKs', { PILLARS_KEK_FILE: '/proc/absent/file' }, /both set/u],
    ['a batch that could never pass the rate limit', { KMS_OPENS_PER_SECOND: '499' }, /at least 500/u],
    [
      'several faults, all named',
      { KMS_STATE_DIR: undefined, OPS_PORT: 'x', NATS_NKEY_SEED: undefined },
      /KMS_STATE_DIR.*NATS_NKEY_SEED.*OPS_PORT/su,
    ],
  ];
  for (const [name, changes, message] of table) {
    test(name, async () => {
      await assert.rejects(kms.start(changes), (error: Error & { code?: string }) => {
        assert.equal(error.code, 'misconfigured');
        assert.match(error.message, message);
        return true;
      });
    });
  }
  test('an nkey the bus does not know', () =>
    rejects(kms.start({ NATS_NKEY_SEED: createUserNkey().seed }), 'bus_unavailable'));
  test('a text that is no nkey', () => rejects(kms.start({ NATS_NKEY_SEED: 'wrong' }), 'misconfigured'));
});

describe('a broken state file is named, and left as it is', () => {
  const table: [string, string][] = [
    ['identity-key.json', ''],
    ['identity-key.json', '{"format":"colonnade-identity-key/1"'],
    ['identity-key.json', '{"format":"colonnade-identity-key/1","active":"x","keys":[]}'],
    ['mac-key.json', '{"format":"colonnade-mac-key/1","key_hex":"00"}'],
    ['readers/abcdefgh.json', '{}'],
    ['revoked/0123456789abcdef', 'x'],
  ];
  for (const [name, content] of table) {
    test(`${name}: ${content || 'empty'}`, async () => {
      const stateDir = path.join(kms.dir, `broken-${randomBytes(4).toString('hex')}`);
      const file = path.join(stateDir, name);
      for (const dir of [stateDir, path.dirname(file)]) await mkdir(dir, { recursive: true, mode: 0o700 });
      await writeFile(file, content, { mode: 0o600 });
      await assert.rejects(kms.start({ KMS_STATE_DIR: stateDir }), (error: Error & { code?: string }) => {
        assert.equal(error.code, 'misconfigured');
        assert.ok(error.message.includes(name), error.message);
        return true;
      });
      assert.equal(await readFile(file, 'utf8'), content);
    });
  }

  test('keys whose parts do not fit each other', async () => {
    await using _service = await kms.start();
    const good = JSON.parse(await readFile(path.join(kms.stateDir, 'identity-key.json'), 'utf8'));
    const d = randomBytes(32).toString('base64url');
    for (const change of [{ d }, { kid: 'x' }]) {
      const stateDir = path.join(kms.dir, `mixed-${randomBytes(4).toString('hex')}`);
      await mkdir(stateDir, { mode: 0o700 });
      const content = JSON.stringify({ ...good, keys: [{ ...good.keys[0], ...change }] });
      await writeFile(path.join(stateDir, 'identity-key.json'), content, { mode: 0o600 });
      await assert.rejects(kms.start({ KMS_STATE_DIR: stateDir }), (error: Error) => {
        assert.ok(!error.message.includes(d));
        return error.message.includes('do not fit');
      });
    }
  });

  test('a file or folder that others may read', async () => {
    const stateDir = path.join(kms.dir, 'open-state');
    await (await kms.start({ KMS_STATE_DIR: stateDir }))[Symbol.asyncDispose]();
    await chmod(path.join(stateDir, 'identity-key.json'), 0o640);
    await assert.rejects(
      kms.start({ KMS_STATE_DIR: stateDir }),
      /identity-key\.json is open to others: chmod 600/u,
    );
    await chmod(path.join(stateDir, 'identity-key.json'), 0o600);
    await chmod(stateDir, 0o755);
    await assert.rejects(kms.start({ KMS_STATE_DIR: stateDir }), /is open to others: chmod 700/u);
  });

  test('a bootstrap token that is none, or that others may read', async () => {
    const file = path.join(kms.dir, 'token');
    await writeFile(file, 'col_short', { mode: 0o600 });
    await assert.rejects(kms.start({ BOOTSTRAP_TOKEN_FILE: file }), /holds no API token/u);
    await chmod(file, 0o644);
    await assert.rejects(kms.start({ BOOTSTRAP_TOKEN_FILE: file }), /others may read it/u);
  });
});

test('readiness follows the bus, liveness does not; work goes on when it is back', async () => {
  await using service = await kms.start();
  const status = async (door: string) => (await fetch(`${service.url}${door}`)).status;
  assert.equal(await status('/readyz'), 200);
  await kms.bus.nats.kill('SIGKILL');
  await waitFor('not ready', async () => (await status('/readyz')) === 503);
  assert.equal(await status('/healthz'), 200);
  await kms.bus.nats.restart();
  await waitFor('ready again', async () => (await status('/readyz')) === 200);
  const api = await kms.bus.as('pillar-api');
  const { items } = await waitFor('an answer', () =>
    api.request(kmsSeal, { items: [{ context, value: 1n }] }, call(1000)),
  );
  assert.ok(items[0]?.ok);
  const metrics = await (await fetch(`${service.url}/metrics`)).text();
  assert.match(metrics, /colonnade_kms_items_total\{endpoint="seal",code="ok",service="crypto-kms"\} [1-9]/u);
});
