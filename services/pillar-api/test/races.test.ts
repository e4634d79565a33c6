import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { type ApiClient, createApiClient } from '@colonnade/embedded';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ApiWorld, assertProblem, etagOfAnswer, plain, sendPlain, startWorld } from './support.ts';

describe('two at once', () => {
  let world: ApiWorld;
  let ann: ApiClient;
  let bob: ApiClient;
  /** Ann, through another process on the same store. */
  let annElsewhere: ApiClient;
  let elsewhere: string;

  before(async () => {
    world = await startWorld();
    const second = await world.startApi();
    elsewhere = second.url;
    const annToken = (await world.tokenOf(['editor'], 'ann')).token;
    ann = createApiClient(world.api.url, annToken);
    annElsewhere = createApiClient(second.url, annToken);
    bob = createApiClient(second.url, (await world.tokenOf(['editor'], 'bob')).token);
  });
  after(() => world[Symbol.asyncDispose]());

  const create = (client: ApiClient, name: string, headers?: Record<string, string>, value: unknown = 1) =>
    sendPlain(client, 'POST', '/pillars', { tgt_type: 'root', name, value }, headers);
  const namesakes = async (name: string) =>
    (plain(await sendPlain(ann, 'POST', '/pillars/list', { name })) as { items: unknown[] }).items.length;

  test('two editors who read the same state 1,000 times: one wins each time, the other is told', async () => {
    const made = await create(ann, 'contended');
    const url = `/pillars/${plain(made).pid}`;
    let etag = etagOfAnswer(made);
    for (let round = 0; round < 1000; round += 1) {
      const put = (client: ApiClient, by: string) =>
        sendPlain(client, 'PUT', url, { value: `${by} ${round}` }, { 'if-match': etag });
      const answers = await Promise.all([put(ann, 'ann'), put(bob, 'bob')]);
      assert.deepEqual(answers.map((a) => a.status).sort(), [200, 412], `round ${round}`);
      const won = answers.find((a) => a.status === 200);
      assert.ok(won);
      etag = etagOfAnswer(won);
      const now = await ann.send('GET', url);
      assert.deepEqual([plain(now).value, etagOfAnswer(now)], [plain(won).value, etag]);
    }
    let versions = 0;
    for (let cursor: unknown = ''; cursor !== null; ) {
      const more = cursor === '' ? '' : `&cursor=${encodeURIComponent(String(cursor))}`;
      const page = plain(await ann.send('GET', `${url}/versions?limit=500${more}`));
      versions += (page.items as unknown[]).length;
      cursor = page.next_cursor;
    }
    assert.equal(versions, 1001, 'no update was lost, and none came twice');
  });

  test("two admins who delete each other's token: one stays, and can still make another", async () => {
    for (let round = 0; round < 10; round += 1) {
      const [one, two] = [await world.tokenOf(['admin'], 'one'), await world.tokenOf(['admin'], 'two')];
      const [first, second] = [
        createApiClient(world.api.url, one.token),
        createApiClient(elsewhere, two.token),
      ];
      const answers = await Promise.all([
        first.send('DELETE', `/tokens/${two.id}`),
        second.send('DELETE', `/tokens/${one.id}`),
      ]);
      const statuses = answers.map(({ status }) => status);
      assert.equal(statuses.filter((status) => status === 204).length, 1, statuses.join());
      const winner = statuses[0] === 204 ? first : second;
      const next = await sendPlain(winner, 'POST', '/tokens', { sub: 'next', roles: ['admin'] });
      assert.equal(next.status, 201);
      for (const id of [plain(next).id, statuses[0] === 204 ? one.id : two.id])
        assert.equal((await world.admin.send('DELETE', `/tokens/${id}`)).status, 204);
    }
  });

  test('a deletion and a change of one state: one of them happens', async () => {
    for (let round = 0; round < 20; round += 1) {
      const made = await create(ann, `doomed-${round}`);
      const url = `/pillars/${plain(made).pid}`;
      const headers = { 'if-match': etagOfAnswer(made) };
      const [put, gone] = await Promise.all([
        sendPlain(ann, 'PUT', url, { value: 2 }, headers),
        bob.send('DELETE', url, undefined, headers),
      ]);
      if (gone.status === 204) assert.ok([404, 412].includes(put.status), String(put.status));
      else assert.deepEqual([put.status, gone.status], [200, 412]);
    }
  });

  test('twenty who make the same pillar make it once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => create(i % 2 === 0 ? ann : bob, 'unique')),
    );
    assert.equal(answers.filter((a) => a.status === 201).length, 1);
    for (const answer of answers.filter((a) => a.status !== 201))
      assertProblem(answer, 409, 'already_exists');
    assert.equal(await namesakes('unique'), 1);
  });

  test('the same Idempotency-Key gets the same answer, also after the pillar was changed and deleted', async () => {
    const headers = { 'idempotency-key': 'key-1' };
    const first = await create(ann, 'idem', headers);
    assert.deepEqual([first.status, first.headers.get('idempotent-replayed')], [201, null]);
    const url = `/pillars/${plain(first).pid}`;
    const put = await sendPlain(ann, 'PUT', url, { value: 2 }, { 'if-match': etagOfAnswer(first) });
    await ann.call('DELETE', url, undefined, { 'if-match': etagOfAnswer(put) });
    for (const client of [ann, annElsewhere]) {
      const again = await create(client, 'idem', headers);
      assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [201, 'true']);
      assert.deepEqual(plain(again), plain(first));
      assert.equal(etagOfAnswer(again), etagOfAnswer(first));
      assert.equal(again.headers.get('location'), first.headers.get('location'));
    }
    assert.equal(await namesakes('idem'), 0);
  });

  test('a key is bound to its body, and to user and route', async () => {
    const headers = { 'idempotency-key': 'key-2' };
    assert.equal((await create(ann, 'bound', headers)).status, 201);
    assertProblem(await create(ann, 'bound-2', headers), 422, 'idempotency_mismatch', 'Idempotency-Key');
    assert.equal((await create(bob, 'bound-of-bob', headers)).status, 201);
    assert.equal((await sendPlain(ann, 'POST', '/collections', { name: 'c' }, headers)).status, 201);
    const again = await sendPlain(ann, 'POST', '/collections', { name: 'c' }, headers);
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [201, 'true']);
  });

  test('a refused request leaves its key free', async () => {
    const headers = { 'idempotency-key': 'key-3' };
    assertProblem(await create(ann, '_errors', headers), 422, 'unprocessable');
    assertProblem(await create(ann, 'bound', headers), 409, 'already_exists');
    assert.equal((await create(ann, 'free', headers)).status, 201);
  });

  test('ten retries at once through two processes make one pillar', async () => {
    const headers = { 'idempotency-key': 'key-4' };
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) => create(i % 2 === 0 ? ann : annElsewhere, 'retried', headers)),
    );
    const made = answers.filter((a) => a.status === 201);
    assert.ok(made.length >= 1);
    assert.equal(new Set(made.map((a) => plain(a).pid)).size, 1);
    for (const answer of answers.filter((a) => a.status !== 201)) assertProblem(answer, 409, 'in_flight');
    assert.equal(await namesakes('retried'), 1);
  });

  test('a request under way keeps its key busy', async () => {
    const headers = { 'idempotency-key': 'key-5' };
    await world.kms.kill('SIGSTOP');
    const first = create(ann, 'slow', headers);
    try {
      await waitFor('409 for the second request', async () => {
        const budget = new Promise<undefined>((resolve) => setTimeout(resolve, 500, undefined));
        const answer = await Promise.race([create(ann, 'slow', headers), budget]);
        return answer?.status === 409 && plain(answer).code === 'in_flight';
      });
    } finally {
      await world.kms.kill('SIGCONT');
    }
    assert.equal((await first).status, 201);
  });

  test('what is kept for a key holds no value', async () => {
    const canary = 'canary-of-idempotency';
    const body = { tgt_type: 'root', name: 'kept', value: canary };
    assert.equal(
      (await sendPlain(ann, 'POST', '/pillars', body, { 'idempotency-key': 'key-6' })).status,
      201,
    );
    const db = new DatabaseSync(world.storePath, { readOnly: true });
    const rows = db.prepare('SELECT * FROM idempotency').all();
    db.close();
    assert.ok(rows.length > 0);
    assert.ok(!JSON.stringify(rows).includes(canary));
  });
});
