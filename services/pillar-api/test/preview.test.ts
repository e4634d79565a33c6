import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { route } from '@colonnade/bus';
import { AUDIT_STREAM, ColonnadeError, mergerExplain } from '@colonnade/contracts';
import { waitFor } from '../../../test/support/wait-for.ts';
import {
  type ApiWorld,
  assertProblem,
  auditRecords,
  plain,
  readStream,
  sendPlain,
  startWorld,
} from './support.ts';

const PLAIN = 'plain as day';
const SECRET = 'correct horse battery staple';
const root = { tgt_type: 'root' } as const;

/** The merger here only repeats what it is asked: what it makes of it is tested beside it, and together in test/e2e. */
describe('what a preview asks of a merger', () => {
  let world: ApiWorld;
  const asked: Record<string, unknown>[] = [];

  const preview = (body: object) =>
    sendPlain(world.admin, 'POST', '/explain/preview', { master: 'm1', minion_id: 'web-1', ...body });
  const set = (name: string, more: object) => ({ op: 'set', ...root, name, ...more });

  before(async () => {
    world = await startWorld();
    await sendPlain(world.admin, 'POST', '/masters', { id: 'm1' });
    await sendPlain(world.admin, 'POST', '/pillars', {
      ...root,
      name: 'sealed',
      value: 's',
      is_secret: true,
    });
    const merger = await world.bus.as('pillar-merger');
    const repeat = route(mergerExplain, async (request) => {
      asked.push(request);
      if (request.past !== undefined) throw new ColonnadeError('too_large', 'the answer is too large');
      const { master, minion_id, pillarenv, changes = [] } = request;
      const keys = changes.map(({ name, is_secret, op: _, ...place }, change) => {
        return { name, is_secret, value: null, winner: { pid: null, ...place, change }, overrode: [] };
      });
      return { clock: 1, master, minion_id, pillarenv, scopes: [], keys };
    });
    await merger.serve({ name: 'pillar-merger', version: '0.1.0', description: 'test' }, [repeat]);
  });
  after(() => world[Symbol.asyncDispose]());

  test('values stay with the API, and no secret is in the answer or on record', async () => {
    const changes = [
      set('open', { value: [PLAIN] }),
      set('password', { value: SECRET, is_secret: true }),
      set('sealed', { value: SECRET }),
      set('no_value', { is_secret: true }),
    ];
    const answer = await preview({ changes });
    assert.equal(answer.status, 200, JSON.stringify(plain(answer)));
    const keys = plain(answer).keys as { name: string; value: unknown; is_secret: boolean }[];
    assert.deepEqual(
      keys.map(({ name, value, is_secret }) => [name, value, is_secret]),
      [
        ['open', [PLAIN], false],
        ['password', '*******', true],
        ['sealed', '*******', true],
        ['no_value', '*******', true],
      ],
    );
    const request = JSON.stringify(asked.at(-1));
    assert.ok(!request.includes(PLAIN) && !request.includes('horse'), request);
    const hidden = plain(await preview({ changes, values: 'omit' })).keys as { value: unknown }[];
    assert.deepEqual(
      hidden.map(({ value }) => value),
      [null, null, null, null],
    );
    const ofPreviews = async () => {
      const records = await auditRecords(world.bus);
      const own = records.filter(({ requestURI, stage }) => {
        return requestURI === '/explain/preview' && stage === 'ResponseComplete';
      });
      return own.length >= 2 ? own : undefined;
    };
    const own = await waitFor('the records of both', ofPreviews);
    for (const { verb, objectRef } of own) {
      assert.equal(verb, 'get');
      assert.deepEqual(
        [objectRef?.namespace, objectRef?.name, objectRef?.subresource],
        ['m1', 'web-1', 'explain'],
      );
    }
    const stored = (await readStream(world.bus, AUDIT_STREAM)).map(({ data }) => data.toString());
    assert.ok(!stored.join().includes('horse'));
  });

  test('what could not be written is refused, with its place', async () => {
    const before = asked.length;
    const many = Array.from({ length: 201 }, (_, i) => set(`n${i}`, { value: 1 }));
    const refused = [
      [[set('a', {})], 422, 'unprocessable', 'changes.0.value'],
      [[set('a', { value: 1 }), set('a', { value: 2 })], 422, 'unprocessable', 'changes.1.name'],
      [[{ op: 'delete', ...root, name: 'none' }], 422, 'unprocessable', 'changes.0.name'],
      [[{ op: 'delete', ...root, name: 'sealed', value: 1 }], 422, 'unprocessable', 'changes.0.value'],
      [[set('a', { value: { $enc: {} } })], 422, 'value_invalid', 'changes.0.value'],
      [[set('_errors', { value: 1 })], 422, 'unprocessable', 'changes.0.name'],
      [
        [{ op: 'set', tgt_type: 'minion', minion_id: 'x', master: 'm1', name: 'a', value: 1 }],
        422,
        'unknown_minion',
        'changes.0.minion_id',
      ],
      [many, 422, 'unprocessable', 'changes'],
    ] as const;
    for (const [changes, status, code, field] of refused) {
      assertProblem(await preview({ changes }), status, code, field);
    }
    assertProblem(await preview({ collections: ['none'] }), 422, 'unprocessable', 'collections.0');
    assert.equal(asked.length, before, 'no merger was asked');
  });

  test('scopes too large to be told of as they were are refused with what to ask instead', async () => {
    const answer = await preview({ at: 1, values: 'omit' });
    assertProblem(answer, 422, 'unprocessable', 'at');
    assert.match(
      String(plain(answer).detail),
      /over 4 MiB: ask for some of its environments with pillarenv/u,
    );
    for (const at of [-1, 1.5, 'noon', '2026-01-01', null]) {
      assertProblem(await preview({ at }), 422, 'unprocessable', 'at');
    }
  });

  test('roles for a part of the estate do not preview a whole pillar', async () => {
    const scoped = await world.scoped([{ role: 'editor', tgt_types: ['minion'] }]);
    const body = { master: 'm1', minion_id: 'web-1' };
    assertProblem(await sendPlain(scoped, 'POST', '/explain/preview', body), 403, 'forbidden');
  });
});
