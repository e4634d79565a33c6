import assert from 'node:assert/strict';
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import {
  encodeTree,
  HEADER_BUDGET_MS,
  HEADER_REPLY_KEY,
  kmsCheck,
  kmsEnrol,
  kmsIssueMaster,
  kmsIssueTask,
  kmsMakeEnrolment,
  kmsOpenForApi,
  kmsOpenForMerger,
  kmsRenewWorkload,
  kmsSeal,
  minionTarget,
  zEnc,
} from '@colonnade/contracts';
import { parseValue, toPlain, type Value, ValueError, valuesEqual } from '@colonnade/value';
import fc from 'fast-check';
import { assertTellsNothing, fuzzRuns, mutantsOf } from '../../../test/support/fuzz.ts';
import { type EncFields, encMutants, encText } from '../../../test/support/fuzz-enc.ts';
import { headers, type NatsConnection } from '../../../test/support/real-bus.ts';
import { call, type PreparedKms, prepareKms } from './support.ts';

const SECRET = 'correct horse battery staple';
const BATCH = 100;
const target = minionTarget('web1', 'm1');
const context = { tgt_type: target.tgtType, tgt_id: target.tgtId, pillarenv: target.pillarenv, name: 'x' };
/** Answers that hold a secret are sealed to whoever asks; here nobody opens them. */
const replyKey = generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' }).x ?? '';

/** A smaller sample of what the other tests of this kind do, through a nats-server and everything that stands before the functions. */
describe('a running KMS, asked with mutants', () => {
  let kms: PreparedKms;
  let api: Bus;
  let merger: Bus;
  let rawApi: NatsConnection;
  let rawMerger: NatsConnection;
  let master: string;
  let sealed: Value[];
  before(async () => {
    kms = await prepareKms();
    await kms.start({
      KMS_ROOT_KEY_B64: randomBytes(32).toString('base64'),
      KMS_OPENS_PER_SECOND: '1000000',
    });
    [api, merger] = [await kms.bus.as('pillar-api'), await kms.bus.as('pillar-merger')];
    [rawApi, rawMerger] = [await kms.bus.raw('pillar-api'), await kms.bus.raw('pillar-merger')];
    const issuing = await kms.granted(kmsIssueMaster, { master: 'm1', lifetime_s: 600 });
    ({ token: master } = await api.request(kmsIssueMaster, issuing, call()));
    const asked = [SECRET, 'another'].map((value) => ({ context, value }));
    const { items } = await api.request(kmsSeal, { items: asked }, call());
    sealed = items.map((item) => (item.ok ? encodeTree(zEnc, item.result) : assert.fail()));
  });
  after(() => kms[Symbol.asyncDispose]());

  /** The code and text of the answer to any bytes. */
  async function ask(connection: NatsConnection, subject: string, body: string) {
    const head = headers();
    head.set(HEADER_BUDGET_MS, '5000');
    head.set(HEADER_REPLY_KEY, replyKey);
    const answer = await connection.request(subject, body, { timeout: 5000, headers: head });
    return { code: answer.headers?.get('Nats-Service-Error') || 'ok', text: answer.string() };
  }

  /** Asked with mutants of tokens in place of one. */
  async function refuses(
    connection: NatsConnection,
    subject: string,
    genuine: readonly string[],
    bodyOf: (token: string) => object,
  ) {
    const property = fc.asyncProperty(mutantsOf(genuine), async (token) => {
      if (genuine.includes(token)) return;
      const { code, text } = await ask(connection, subject, JSON.stringify(bodyOf(token)));
      assert.ok(['unauthorized', 'bad_request'].includes(code), `${code}: ${text}`);
      assertTellsNothing(text, [...genuine, SECRET]);
    });
    await fc.assert(property, fuzzRuns(250, 10_000));
  }

  test('tokens of masters, identities, grants and one-time tokens: each is refused, and the genuine are good after it', async () => {
    const open = (token: string) => ({
      token,
      master: 'm1',
      minion_id: 'web1',
      items: [{ context, enc: sealed[0] as Value }],
    });
    await refuses(rawMerger, kmsOpenForMerger.subject, [master], (token) => {
      return { ...open(token), items: [{ context, enc: toPlain(sealed[0] as Value) }] };
    });
    const [opened] = (await merger.request(kmsOpenForMerger, open(master), call())).items;
    assert.ok(opened?.ok && opened.result === SECRET);

    const reveal = (grant: string) => ({ grant, context, enc: toPlain(sealed[0] as Value) });
    const revealing = { context, enc: sealed[0] as Value };
    const { grant: own } = await kms.granted(kmsOpenForApi, revealing);
    const elsewhere = { ...revealing, context: { ...context, name: `${context.name}x` } };
    const { grant: other } = await kms.granted(kmsOpenForApi, elsewhere);
    await refuses(rawApi, kmsOpenForApi.subject, [own, other], reveal);
    const revealed = await api.request(kmsOpenForApi, { ...reveal(own), enc: sealed[0] as Value }, call());
    assert.equal(revealed.value, SECRET);

    const workload = { kind: 'service', service: 'shop' } as const;
    const sid = randomUUID();
    const enrolling = await kms.granted(kmsMakeEnrolment, { workload, sid, lifetime_s: 600 });
    const { token: once } = await api.request(kmsMakeEnrolment, enrolling, call());
    await refuses(rawApi, kmsEnrol.subject, [once], (token) => ({ token }));
    const { token: service } = await api.request(kmsEnrol, { token: once }, call());

    const ofTask = await kms.granted(kmsIssueTask, { task: 't1', template: 'deploy' });
    const task = await api.request(kmsIssueTask, ofTask, call());
    await refuses(rawApi, kmsRenewWorkload.subject, [service, task.token], (token) => ({ token }));
    assert.match((await api.request(kmsRenewWorkload, { token: service }, call())).token, /^eyJ/u);
  });

  test('sealed values in batches: each has its own answer, and only the genuine open', async () => {
    const genuine = sealed.map((value) => (toPlain(value) as { $enc: EncFields }).$enc);
    const contextText = JSON.stringify(context);
    const open = async (values: readonly Value[]) => {
      const items = values.map((enc) => ({ context, enc }));
      return (
        await merger.request(
          kmsOpenForMerger,
          { token: master, master: 'm1', minion_id: 'web1', items },
          call(),
        )
      ).items;
    };
    await fc.assert(
      fc.asyncProperty(fc.array(encMutants(genuine), { minLength: 1, maxLength: BATCH }), async (texts) => {
        const small = texts.filter((text) => text.length < 20_000 && isMessage(text));
        if (small.length === 0) return;
        const values = small.map((text) => parseValue(text));
        const body = `{"items":[${small.map((text) => `{"context":${contextText},"enc":${text}}`).join(',')}]}`;
        const checked = await ask(rawApi, kmsCheck.subject, body);
        assert.equal(checked.code, 'ok', checked.text);
        assertTellsNothing(checked.text, [SECRET]);
        const opened = await open(values);
        for (const [i, { ok }] of (
          JSON.parse(checked.text) as { items: { ok: boolean }[] }
        ).items.entries()) {
          const at = sealed.findIndex((one) => valuesEqual(one, values[i] as Value));
          assert.equal(ok, at >= 0, small[i]);
          const item = opened[i];
          if (item?.ok) assert.equal(item.result, [SECRET, 'another'][at], small[i]);
          else assert.match(String(item?.error.code), /^(?:value_invalid|kid_unknown|decrypt_failed)$/u);
          assert.equal(item?.ok, ok, small[i]);
        }
      }),
      fuzzRuns(60),
    );
  });

  test('messages that were changed anywhere: a documented answer, and nothing of a secret in it', async () => {
    const genuine = sealed.map((value) => (toPlain(value) as { $enc: EncFields }).$enc);
    const enc = encText(genuine[0] as EncFields);
    const item = `{"context":${JSON.stringify(context)},"enc":${enc}}`;
    const message = `{"token":"${master}","master":"m1","minion_id":"web1","items":[${item}]}`;
    const mutant = fc.oneof(
      mutantsOf([message]),
      encMutants(genuine).map((text) => message.replace(enc, () => text)),
      fc
        .constantFrom('items', 'token', 'master', 'enc')
        .map((name) => message.replace(/\}$/u, `,"${name}":null}`)),
    );
    const codes = ['ok', 'bad_request', 'unauthorized', 'too_large'];
    await fc.assert(
      fc.asyncProperty(mutant, async (text) => {
        const answer = await ask(rawMerger, kmsOpenForMerger.subject, text);
        assert.ok(codes.includes(answer.code), `${answer.code}: ${answer.text}`);
        assertTellsNothing(answer.text, [SECRET, master]);
      }),
      fuzzRuns(400),
    );
  });
});

/** Whether a message can hold it; one that cannot is refused whole. */
function isMessage(text: string): boolean {
  try {
    parseValue(text, { maxDepth: 40 });
    return true;
  } catch (thrown) {
    assert.ok(thrown instanceof ValueError, String(thrown));
    return false;
  }
}
