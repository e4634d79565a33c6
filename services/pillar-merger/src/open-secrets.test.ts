import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError, type ErrorCode, LIMITS, startCall } from '@colonnade/contracts';
import type { PillarRecord } from '@colonnade/estate-store';
import { mergeScopes } from './merge.ts';
import { type AskKms, openSecrets, secretsOf } from './open-secrets.ts';

const who = { token: 't', master: 'm1', minionId: 'web-1' };
const call = () => startCall(1000);

function pillar(name: string, scope: string, sealed?: string, isSecret = sealed !== undefined): PillarRecord {
  const by = { createdBy: 't', updatedBy: 't', createdAtMs: 0, updatedAtMs: 0, tick: 1 };
  const value = sealed === undefined ? 'plain' : { $enc: { ct_b64: sealed } };
  return {
    pid: `${scope}/${name}`,
    tgtType: 'root',
    tgtId: 'root',
    pillarenv: scope,
    name,
    value,
    isSecret,
    ...by,
  };
}

function secretsAmong(...records: PillarRecord[]) {
  const scopes = [...new Set(records.map(({ pillarenv }) => pillarenv))];
  return secretsOf(mergeScopes(scopes, (scope) => records.filter((r) => r.pillarenv === scope)));
}

/** A KMS that answers each item with its name. */
function createKms(
  change: (items: Awaited<ReturnType<AskKms>>['items']) => Awaited<ReturnType<AskKms>>['items'] = (x) => x,
) {
  const asked: string[][] = [];
  const ask: AskKms = async ({ items }) => {
    asked.push(items.map(({ context }) => `${context.pillarenv}/${context.name}`));
    return { items: change(items.map(({ context }) => ({ ok: true, result: `opened ${context.name}` }))) };
  };
  return { ask, asked };
}

test('only winners are opened: a secret that was overridden stays sealed', async () => {
  const { ask, asked } = createKms();
  const secrets = secretsAmong(
    pillar('a', 's1', 'x'),
    pillar('b', 's1', 'x'),
    pillar('c', 's1'),
    pillar('a', 's2', 'y'),
    pillar('b', 's2'),
    pillar('c', 's2', 'z'),
  );
  const opened = await openSecrets(secrets, who, ask, call());
  assert.deepEqual(asked, [['s2/a', 's2/c']]);
  assert.deepEqual(
    [...opened].map(([{ pid }, value]) => [pid, value]),
    [
      ['s2/a', 'opened a'],
      ['s2/c', 'opened c'],
    ],
  );
});

test('without a secret the KMS is not asked', async () => {
  const { ask, asked } = createKms();
  assert.equal((await openSecrets(secretsAmong(pillar('a', 's1')), who, ask, call())).size, 0);
  assert.deepEqual(asked, []);
});

test('batches stay below both limits of the KMS, in order and whole', async () => {
  const { ask, asked } = createKms();
  const many = Array.from({ length: LIMITS.kmsBatchItems + 3 }, (_, i) => pillar(`k${i}`, 's', 'x'));
  assert.equal((await openSecrets(secretsAmong(...many), who, ask, call())).size, many.length);
  assert.deepEqual(
    asked.map((batch) => batch.length),
    [LIMITS.kmsBatchItems, 3],
  );
  asked.length = 0;
  const ct = 'A'.repeat(340_000);
  const large = Array.from({ length: 20 }, (_, i) => pillar(`k${i}`, 's', ct));
  assert.equal((await openSecrets(secretsAmong(...large), who, ask, call())).size, 20);
  assert.deepEqual(
    asked.flat(),
    large.map(({ pid }) => pid),
  );
  for (const batch of asked) assert.ok(batch.length * ct.length <= LIMITS.kmsBatchBytes);
});

const codeOf = async (work: Promise<unknown>): Promise<ErrorCode | undefined> =>
  work.then(
    () => undefined,
    (thrown) => (thrown as ColonnadeError).code,
  );

test('one item that fails, an answer too short, or a secret that is not sealed fails the whole merge', async () => {
  const secrets = secretsAmong(pillar('a', 's', 'x'), pillar('b', 's', 'y'));
  const failing = (code: ErrorCode) =>
    createKms(([first]) => [first as never, { ok: false, error: { code, message: 'no' } }]).ask;
  assert.equal(await codeOf(openSecrets(secrets, who, failing('decrypt_failed'), call())), 'kms_refused');
  assert.equal(await codeOf(openSecrets(secrets, who, failing('key_not_configured'), call())), 'kms_refused');
  assert.equal(await codeOf(openSecrets(secrets, who, failing('unavailable'), call())), 'kms_unavailable');
  const short = createKms(([first]) => [first as never]).ask;
  assert.equal(await codeOf(openSecrets(secrets, who, short, call())), 'kms_refused');
  const notSealed = secretsAmong(pillar('a', 's', undefined, true));
  assert.equal(await codeOf(openSecrets(notSealed, who, createKms().ask, call())), 'kms_refused');
});

test('whatever the KMS or the bus throws is one of two codes', async () => {
  const secrets = secretsAmong(pillar('a', 's', 'x'));
  const throwing =
    (code: ErrorCode): AskKms =>
    async () => {
      throw new ColonnadeError(code, 'no');
    };
  const away: ErrorCode[] = ['unavailable', 'bus_unavailable', 'rate_limited', 'overloaded', 'expired'];
  for (const code of away)
    assert.equal(await codeOf(openSecrets(secrets, who, throwing(code), call())), 'kms_unavailable');
  const refused: ErrorCode[] = [
    'unauthorized',
    'forbidden',
    'kms_refused',
    'too_large',
    'internal',
    'bad_request',
  ];
  for (const code of refused)
    assert.equal(await codeOf(openSecrets(secrets, who, throwing(code), call())), 'kms_refused');
});
