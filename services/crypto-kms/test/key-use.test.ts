import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { kmsListKeys, kmsSeal, rootTarget } from '@colonnade/contracts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { USES_LIMIT, USES_PER_BYTE } from '../src/keyring/uses.ts';
import { call, prepareKms } from './support.ts';

const { tgtType: tgt_type, tgtId: tgt_id, pillarenv } = rootTarget;
const context = { tgt_type, tgt_id, pillarenv, name: 'x' };
/** More than the first block that a replica claims, so that the first seal is no reason to warn, and the second block is. */
const WARN_AT = USES_PER_BYTE + 1;
const BATCH = 100;

test('a key that has encrypted often is warned of long before its limit, and the count is a metric', async () => {
  await using kms = await prepareKms();
  const { url } = await kms.start({
    ...{ KMS_ROOT_KEY_B64: randomBytes(32).toString('base64'), KMS_KEY_PREPUBLISH_S: '1' },
    KMS_KEY_WARN_ENCRYPTIONS: String(WARN_AT),
  });
  const api = await kms.bus.as('pillar-api');
  const items = Array.from({ length: BATCH }, () => ({ context, value: 1 }));
  const seal = () => api.request(kmsSeal, { items }, call());
  const gauge = async () => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return Number(/^colonnade_kms_key_encryptions\{.*kid="core-kek-v1".*\} (\d+)$/mu.exec(text)?.[1]);
  };
  const warnings = () =>
    kms.logLines
      .map((line) => JSON.parse(line) as { level: string; msg: string; kid: string; limit: number })
      .filter(({ msg }) => msg.includes('has encrypted often'));

  await seal();
  await waitFor('the first block in the metric', async () => (await gauge()) === USES_PER_BYTE);
  assert.deepEqual(warnings(), []);
  for (let done = BATCH; done <= USES_PER_BYTE; done += BATCH) await seal();
  await waitFor('the second block in the metric', async () => (await gauge()) === 2 * USES_PER_BYTE);
  const [warning] = await waitFor('the warning', () => (warnings().length > 0 ? warnings() : undefined));
  assert.deepEqual(
    [warning?.level, warning?.kid, warning?.limit, USES_LIMIT],
    ['warn', 'core-kek-v1', 2 ** 32, 2 ** 32],
  );
  // The operator's list says the same.
  const { keys } = await api.request(kmsListKeys, {}, call());
  const pillars = keys.find(({ name }) => name === 'pillars');
  assert.equal(pillars?.versions[0]?.encryptions, 2 * USES_PER_BYTE);
  assert.equal(warnings().length, 1);
});
