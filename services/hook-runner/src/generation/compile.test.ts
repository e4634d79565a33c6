import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ColonnadeError, LIMITS, type TouchedMinion } from '@colonnade/contracts';
import { fromPlain } from '@colonnade/value';
import { type Compiled, compileMinions, findTouched } from './compile.ts';

type Bus = Parameters<typeof compileMinions>[0];
type Asked = { minions: { minion_id: string }[] };

const minionsOf = (count: number): TouchedMinion[] =>
  Array.from({ length: count }, (_, i) => {
    const id = `web-${i}`;
    return { master: 'east', id, hostname: id, agent_type: 'salt', roles: [] };
  });
const result = { ok: true, result: { pillar: fromPlain({ a: 1 }), secrets: [] } };
const busOf = (answer: (request: Asked) => unknown): Bus => ({
  request: (async (_: unknown, request: Asked) => answer(request)) as unknown as Bus['request'],
});

async function compileAll(
  bus: Bus,
  minions: readonly TouchedMinion[],
  signal = new AbortController().signal,
) {
  const taken: Compiled[][] = [];
  await compileMinions(bus, minions, async (some) => void taken.push([...some]), signal);
  return taken;
}

describe('asking the mergers', () => {
  test('of an answer that holds the first ones only, the rest is asked for, until all are there', async () => {
    const asked: string[][] = [];
    const bus = busOf(({ minions }) => {
      asked.push(minions.map(({ minion_id }) => minion_id));
      return { clock: 1, items: minions.slice(0, 3).map(() => result) };
    });
    const taken = await compileAll(bus, minionsOf(8));
    assert.deepEqual(
      asked.map((ids) => [ids[0], ids.length]),
      [
        ['web-0', 8],
        ['web-3', 5],
        ['web-6', 2],
      ],
    );
    assert.deepEqual(
      taken.map((some) => some.map(({ minion }) => minion.id)),
      [
        ['web-0', 'web-1', 'web-2'],
        ['web-3', 'web-4', 'web-5'],
        ['web-6', 'web-7'],
      ],
    );
  });

  test('many are asked for in parts, each once', async () => {
    const sizes: number[] = [];
    const bus = busOf(({ minions }) => {
      sizes.push(minions.length);
      return { clock: 1, items: minions.map(() => result) };
    });
    const minions = minionsOf(2 * LIMITS.compileMinions + 1);
    const ids = (await compileAll(bus, minions)).flat().map(({ minion }) => minion.id);
    assert.deepEqual(ids.sort(), minions.map(({ id }) => id).sort());
    assert.deepEqual(sizes.sort(), [1, LIMITS.compileMinions, LIMITS.compileMinions]);
  });

  test('an error of one minion is its own; one of the request, or an empty answer, that of all who were left', async () => {
    let round = 0;
    const bus = busOf(({ minions }) => {
      round += 1;
      if (round === 1) {
        return { clock: 1, items: [result, { ok: false, error: { code: 'too_large', message: 'big' } }] };
      }
      if (minions.length === 2) throw new ColonnadeError('unavailable', 'nobody is there');
      return { clock: 1, items: [] };
    });
    const codes = async (count: number) =>
      (await compileAll(bus, minionsOf(count)))
        .flat()
        .map((one) => (one.result instanceof ColonnadeError ? one.result.code : 'ok'));
    assert.deepEqual(await codes(4), ['ok', 'too_large', 'unavailable', 'unavailable']);
    assert.deepEqual(await codes(3), ['internal', 'internal', 'internal']);
  });

  test('when taking fails, nothing more is asked for, and what was under way has ended before it is told', async () => {
    let asked = 0;
    let open = 0;
    const bus = busOf(({ minions }) => {
      asked += 1;
      return { clock: 1, items: minions.map(() => result) };
    });
    const take = async () => {
      open += 1;
      for (let turn = 0; turn < 10 * open; turn++) await new Promise(setImmediate);
      open -= 1;
      throw new ColonnadeError('conflict', 'another leads');
    };
    const all = minionsOf(20 * LIMITS.compileMinions);
    const work = compileMinions(bus, all, take, new AbortController().signal);
    await assert.rejects(work, { code: 'conflict' });
    assert.equal(open, 0);
    assert.ok(asked <= 8, `${asked} requests`);
  });

  test('from the store, when it is told so, in every request', async () => {
    const asked: unknown[] = [];
    const bus = busOf((request) => {
      asked.push((request as { fresh?: boolean }).fresh);
      return { clock: 1, items: [result] };
    });
    const go = new AbortController().signal;
    await compileMinions(bus, minionsOf(2), async () => {}, go, true);
    await compileMinions(bus, minionsOf(1), async () => {}, go);
    assert.deepEqual(asked, [true, true, undefined]);
  });

  test('a runner that stops asks for nothing more', async () => {
    const stop = new AbortController();
    const bus = busOf(({ minions }) => {
      stop.abort();
      return { clock: 1, items: minions.slice(0, 1).map(() => result) };
    });
    assert.equal((await compileAll(bus, minionsOf(50), stop.signal)).flat().length, 1);
  });
});

test('those a change touches are read page by page, each once; with everybody touched, only everybody is asked for', async () => {
  const asked: string[] = [];
  const bus = busOf((request) => {
    const { touched, after } = request as unknown as { touched: { kind: string }; after?: string };
    asked.push(`${touched.kind} ${after ?? ''}`);
    const page = minionsOf(4);
    return after === undefined ? { minions: page.slice(0, 2), next: 'n' } : { minions: page.slice(1) };
  });
  const one = { kind: 'minion', master: 'east', id: 'web-1' } as const;
  const web = { kind: 'collection', id: 'web' } as const;
  const ids = async (...touched: Parameters<typeof findTouched>[1]) =>
    (await findTouched(bus, touched)).map(({ id }) => id);
  assert.deepEqual((await ids(one, web)).sort(), ['web-0', 'web-1', 'web-2', 'web-3']);
  assert.deepEqual(asked.splice(0).sort(), ['collection ', 'collection n', 'minion ', 'minion n']);
  await ids(one, { kind: 'all' }, web);
  assert.deepEqual(asked, ['all ', 'all n']);
});
