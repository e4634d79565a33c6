import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import {
  HEADER_BUDGET_MS,
  HEADER_REPLY_KEY,
  kmsIssueMaster,
  kmsJwks,
  kmsMac,
  kmsOpenForApi,
  kmsOpenForMerger,
  kmsPutReader,
  kmsSeal,
  LIMITS,
} from '@colonnade/contracts';
import { headers, type NatsConnection } from '../../../test/support/real-bus.ts';
import { call, type PreparedKms, prepareKms, rejects } from './support.ts';

let kms: PreparedKms;
let api: NatsConnection;
let merger: NatsConnection;
let token: string;

before(async () => {
  kms = await prepareKms();
  await kms.start({ KMS_OPENS_PER_SECOND: '500' });
  api = await kms.bus.raw('pillar-api');
  merger = await kms.bus.raw('pillar-merger');
  const bus = await kms.bus.as('pillar-api');
  const asked = await kms.granted(kmsIssueMaster, { master: 'm1', lifetime_s: 60 });
  ({ token } = await bus.request(kmsIssueMaster, asked, call()));
});
after(() => kms[Symbol.asyncDispose]());

/** Answers that hold a secret are sealed to whoever asks; here nobody opens them. */
const replyKey = generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' }).x ?? '';

/** The code in the micro error header; `ok` when there is none. */
async function ask(
  connection: NatsConnection,
  subject: string,
  body: string | Uint8Array,
  budgetMs = '5000',
) {
  const head = headers();
  head.set(HEADER_BUDGET_MS, budgetMs);
  head.set(HEADER_REPLY_KEY, replyKey);
  const answer = await connection.request(subject, body, { timeout: 5000, headers: head });
  const code = answer.headers?.get('Nats-Service-Error') || 'ok';
  return { code, text: code === 'ok' ? '' : answer.json<{ message: string }>().message };
}

const context = '{"name":"x","pillarenv":"base","tgt_id":"root","tgt_type":"root"}';
const sealOf = (item: string) => `{"items":[${item}]}`;
const good = `{"context":${context},"value":1}`;

describe('a request that is not one is refused whole, with the reason', () => {
  const table: [string, string | Uint8Array, string, RegExp][] = [
    ['empty', '', 'bad_request', /not valid JSON/u],
    ['no JSON', '{"items":', 'bad_request', /line 1/u],
    ['invalid UTF-8', Uint8Array.of(0x22, 0xff, 0x22), 'bad_request', /not valid JSON/u],
    ['a duplicate key', '{"items":[],"items":[]}', 'bad_request', /not valid JSON/u],
    ['a lone surrogate', sealOf(`{"context":${context},"value":"\\ud800"}`), 'bad_request', /surrogate/u],
    [
      'past 64 bits',
      sealOf(`{"context":${context},"value":9223372036854775808}`),
      'bad_request',
      /not valid JSON/u,
    ],
    [
      'too deep for any message',
      sealOf(`{"context":${context},"value":${'['.repeat(60)}${']'.repeat(60)}}`),
      'bad_request',
      /deeper/u,
    ],
    ['no items', '{}', 'bad_request', /items/u],
    ['an empty batch', '{"items":[]}', 'bad_request', /items/u],
    [
      'too many items',
      sealOf(
        Array(LIMITS.kmsBatchItems + 1)
          .fill(good)
          .join(),
      ),
      'bad_request',
      /items/u,
    ],
    ['an unknown field', `{"items":[${good}],"aad":"x"}`, 'bad_request', /unknown field "aad"/u],
    [
      'an unknown field in an item',
      sealOf(`{"context":${context},"value":1,"x":1}`),
      'bad_request',
      /unknown field "x"/u,
    ],
    [
      'a ready-made AAD instead of a context',
      sealOf('{"context":"root:root:base:x","value":1}'),
      'bad_request',
      /context/u,
    ],
    [
      'an unknown tgt_type',
      sealOf(good.replace('"tgt_type":"root"', '"tgt_type":"grain"')),
      'bad_request',
      /tgt_type/u,
    ],
    [
      'a pillarenv too long',
      sealOf(good.replace('"base"', `"${'b'.repeat(1025)}"`)),
      'bad_request',
      /pillarenv/u,
    ],
  ];
  for (const [name, body, code, reason] of table) {
    test(name, async () => {
      const answer = await ask(api, kmsSeal.subject, body);
      assert.equal(answer.code, code);
      assert.match(answer.text, reason);
    });
  }
  test('and none of it is on record as sealed', async () => {
    assert.equal((await kms.records()).filter((record) => record.verb === 'seal').length, 0);
    assert.equal((await ask(api, kmsSeal.subject, sealOf(good))).code, 'ok');
  });
});

describe('other endpoints', () => {
  const open = (over: object) =>
    JSON.stringify({ token, master: 'm1', minion_id: 'web1', items: [], ...over }).replace(
      '"items":[]',
      `"items":[{"context":${context},"enc":1}]`,
    );
  const table: [string, string, () => string, string][] = [
    ['open: no token', kmsOpenForMerger.subject, () => open({ token: undefined }), 'bad_request'],
    [
      'open: a master with a separator',
      kmsOpenForMerger.subject,
      () => open({ master: 'm1;x' }),
      'bad_request',
    ],
    [
      'open: a minion with a separator',
      kmsOpenForMerger.subject,
      () => open({ minion_id: 'a:b' }),
      'bad_request',
    ],
    [
      'open: a token too long',
      kmsOpenForMerger.subject,
      () => open({ token: 'x'.repeat(8193) }),
      'bad_request',
    ],
    ['open: a good one', kmsOpenForMerger.subject, () => open({}), 'ok'],
    ['mac: no digest', kmsMac.subject, () => '{"sha256_hex":"xyz"}', 'bad_request'],
    ['mac: upper case', kmsMac.subject, () => `{"sha256_hex":"${'AB'.repeat(32)}"}`, 'bad_request'],
    ['jwks: something asked', kmsJwks.subject, () => '{"kid":"x"}', 'bad_request'],
    ['issue: no lifetime', kmsIssueMaster.subject, () => '{"grant":"x","master":"m1"}', 'bad_request'],
    [
      'issue: for ever',
      kmsIssueMaster.subject,
      () => '{"grant":"x","master":"m1","lifetime_s":99999999999}',
      'bad_request',
    ],
    [
      'issue: a float',
      kmsIssueMaster.subject,
      () => '{"grant":"x","master":"m1","lifetime_s":600.0}',
      'bad_request',
    ],
    [
      'reader: an unknown right',
      kmsPutReader.subject,
      () =>
        '{"grant":"x","token_id":"abcdefgh","sub":"a","rights":["root"],"grant_key_hex":"","expires_at_ms":null}',
      'bad_request',
    ],
    ['reveal: no grant', kmsOpenForApi.subject, () => `{"context":${context},"enc":1}`, 'bad_request'],
    [
      'reveal: a grant of nothing',
      kmsOpenForApi.subject,
      () => `{"grant":"a.b.c","context":${context},"enc":1}`,
      'unauthorized',
    ],
  ];
  for (const [name, subject, body, code] of table) {
    test(name, async () => {
      const connection = subject === kmsOpenForMerger.subject ? merger : api;
      assert.equal((await ask(connection, subject, body())).code, code);
    });
  }
});

test('nobody works on past the time budget', async () => {
  const value = '"'.padEnd(100_000, 'x');
  const items = Array(25).fill(`{"context":${context},"value":${value}"}`).join();
  // The bus drops it before the batch begins.
  assert.equal((await ask(api, kmsSeal.subject, sealOf(items), '1')).code, 'unavailable');
});

test('a master that asks for too much is told so, on record; others are not touched', async () => {
  const bus = await kms.bus.as('pillar-merger');
  const item = {
    context: { tgt_type: 'root' as const, tgt_id: 'root', pillarenv: 'base', name: 'x' },
    enc: 1n,
  };
  const request = (count: number) => ({
    token,
    master: 'm1',
    minion_id: 'web1',
    items: Array(count).fill(item),
  });
  const work = [1, 2, 3].map(() => bus.request(kmsOpenForMerger, request(500), call()));
  const results = await Promise.allSettled(work);
  assert.equal(
    results.filter((r) => r.status === 'rejected' && r.reason.code === 'rate_limited').length >= 2,
    true,
  );
  const records = (await kms.records()).filter((r) => r.responseStatus?.reason === 'rate_limited');
  assert.equal(records.length >= 2, true);
  assert.equal(records[0]?.user.username, 'master:m1');
});

test('a caller asks only what is its own', async () => {
  const bus = await kms.bus.as('pillar-merger');
  await rejects(bus.request(kmsMac, { sha256_hex: 'ab'.repeat(32) }, call(300)), 'bus_unavailable');
});
