import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import {
  AUDIT_STREAM,
  deriveGrantKey,
  encodeTree,
  kmsIssueMaster,
  kmsOpenForApi,
  kmsOpenForMerger,
  kmsPutReader,
  kmsRevokeIdentity,
  kmsSeal,
  rootTarget,
  zEnc,
} from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import { waitFor } from '../../../test/support/wait-for.ts';
import { call, makeApiToken, type PreparedKms, prepareKms, rejects } from './support.ts';

const BUFFER = 3;

let kms: PreparedKms;
let url: string;
let api: Bus;
let merger: Bus;
let token: string;
let jti: string;
let enc: Value;

const context = {
  tgt_type: rootTarget.tgtType,
  tgt_id: rootTarget.tgtId,
  pillarenv: rootTarget.pillarenv,
  name: 'x',
};
const reveal = async () =>
  api.request(kmsOpenForApi, await kms.granted(kmsOpenForApi, { context, enc }), call());
const merge = async (budgetMs = 300) =>
  merger.request(
    kmsOpenForMerger,
    { token, master: 'm1', minion_id: 'web1', items: [{ context, enc }] },
    call(budgetMs),
  );
const merges = async () => (await kms.records()).filter((r) => r.verb === 'open').length;

before(async () => {
  kms = await prepareKms();
  ({ url } = await kms.start({ KMS_AUDIT_BUFFER: String(BUFFER) }));
  api = await kms.bus.as('pillar-api');
  merger = await kms.bus.as('pillar-merger');
  const asked = await kms.granted(kmsIssueMaster, { master: 'm1', lifetime_s: 600 });
  ({ token, jti } = await api.request(kmsIssueMaster, asked, call()));
  const { items } = await api.request(kmsSeal, { items: [{ context, value: 'v' }] }, call());
  assert.ok(items[0]?.ok);
  enc = encodeTree(zEnc, items[0].result);
});
after(() => kms[Symbol.asyncDispose]());

async function removeStream(): Promise<void> {
  const witness = await kms.bus.witness();
  await waitFor('no record under way', async () => (await pending()) === 0);
  await witness.request(`$JS.API.STREAM.DELETE.${AUDIT_STREAM}`);
  await witness.close();
}

async function restoreStream(): Promise<void> {
  const provisioner = await kms.bus.as('provisioner');
  await provisioner.provisionStreams({
    maxEventsBytes: 16 * 1024 * 1024,
    maxAuditBytes: 16 * 1024 * 1024,
    replicas: 1,
  });
}

async function pending(): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return Number(/^colonnade_kms_audit_pending\S* (\d+)$/mu.exec(metrics)?.[1]);
}

test('without a place for records, nothing that needs one happens', async () => {
  await removeStream();
  await rejects(reveal(), 'bus_unavailable');
  await rejects(
    kms
      .granted(kmsIssueMaster, { master: 'm1', lifetime_s: 60 })
      .then((asked) => api.request(kmsIssueMaster, asked, call())),
    'bus_unavailable',
  );
  const reader = makeApiToken();
  const put = {
    token_id: reader.id,
    sub: 'eve',
    rights: ['reveal' as const],
    grant_key_hex: deriveGrantKey(reader.token).toString('hex'),
    expires_at_ms: null,
  };
  await rejects(api.request(kmsPutReader, await kms.granted(kmsPutReader, put), call()), 'bus_unavailable');
  assert.equal((await readdir(path.join(kms.stateDir, 'readers'))).length, 1);
  await rejects(
    api.request(kmsRevokeIdentity, await kms.granted(kmsRevokeIdentity, { jti }), call()),
    'bus_unavailable',
  );
  assert.deepEqual(await readdir(path.join(kms.stateDir, 'revoked')), []);
  // A refusal is no exception.
  await rejects(
    merger.request(
      kmsOpenForMerger,
      { token: 'x', master: 'm1', minion_id: 'a', items: [{ context, enc }] },
      call(),
    ),
    'bus_unavailable',
  );
  await restoreStream();
  assert.equal((await reveal()).value, 'v');
});

test('merges go on while their records fit into the buffer, and every one is stored in the end', async () => {
  await removeStream();
  let answered = 0;
  let refused = 0;
  // The publishers hold a few on top of the buffer.
  for (let i = 0; i < 60 && refused < 3; i += 1) {
    await merge().then(
      () => (answered += 1),
      (error: { code: string }) => {
        assert.ok(['overloaded', 'unavailable'].includes(error.code), error.code);
        refused += 1;
      },
    );
  }
  assert.equal(refused, 3);
  assert.ok(answered >= BUFFER, `${answered}`);
  await restoreStream();
  await waitFor('all records', async () => (await pending()) === 0);
  assert.equal(await merges(), answered);
  await merge(5000);
});

test('a stopping service hands over the records it has taken', async () => {
  const service = await kms.start();
  const before = await merges();
  await Promise.all(Array.from({ length: 50 }, () => merge(5000)));
  await service[Symbol.asyncDispose]();
  await waitFor('the other replica', async () => (await pending()) === 0);
  assert.equal(await merges(), before + 50);
});
