import assert from 'node:assert/strict';
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import { createLogger, createMetrics } from '@colonnade/service-kit';
import { tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { createEvents } from './events.ts';
import { parseRefreshList, refreshFolder, tellRefreshes } from './refresh-queue.ts';

test('a list names minions by their masters, each once; what is no line of it is counted', () => {
  const text =
    '# east/x\neast/web-1\nwest/web-1\neast/schön 2\neast/web-1\n\neast\n/web\nea st/web\neast/\neast/a/b\n';
  const { byMaster, bad } = parseRefreshList(text);
  assert.deepEqual(
    [...byMaster],
    [
      ['east', ['web-1', 'schön 2']],
      ['west', ['web-1']],
    ],
  );
  assert.equal(bad, 5);
});

describe('the queue', () => {
  /** Works on a queue until it is empty, or as long as told; returns what was asked of the mergers. */
  const work = async (
    files: Record<string, string>,
    ask: (request: { master: string; minions: string[] }) => void,
    until: (dir: string, logged: readonly string[]) => Promise<boolean>,
    keepMs = 60_000,
  ) => {
    await using dir = await tempDir('refresh');
    const folder = refreshFolder(dir.path);
    await mkdir(folder, { recursive: true });
    for (const [name, text] of Object.entries(files)) {
      await mkdir(path.dirname(path.join(folder, name)), { recursive: true });
      await writeFile(path.join(folder, name), text);
      if (name.startsWith('old')) await utimes(path.join(folder, name), 1, 1);
    }
    const logged: string[] = [];
    const logger = createLogger({
      service: 't',
      level: 'debug',
      destination: { write: (l) => logged.push(l) },
    });
    const stop = new AbortController();
    const bus = {
      request: async (_: unknown, request: unknown) => {
        ask(request as { master: string; minions: string[] });
        return { entry: '1-1' } as never;
      },
    };
    const events = createEvents(logger, createMetrics('hook-runner'));
    const working = tellRefreshes({ stateDir: dir.path, refreshKeepMs: keepMs }, bus, events, stop.signal);
    await waitFor('the queue', () => until(folder, logged));
    stop.abort();
    await working;
    return { left: await readdir(folder), logged: logged.join('') };
  };
  const isEmpty = async (folder: string) => (await readdir(folder)).every((name) => name.endsWith('.new'));

  test('each list is told to its masters, in their order, at most 500 minions at once; one being written waits', async () => {
    const asked: string[] = [];
    const many = Array.from({ length: 501 }, (_, i) => `east/m-${i}\n`).join('');
    const { left } = await work(
      { b: many, a: 'west/x\n', 'c.new': 'east/y\n' },
      ({ master, minions }) => asked.push(`${master} ${minions.length}`),
      isEmpty,
    );
    assert.deepEqual(asked, ['west 1', 'east 500', 'east 1']);
    assert.deepEqual(left, ['c.new']);
  });

  test('what cannot be told stays, and is not told of as done', async () => {
    const { left, logged } = await work(
      { a: 'east/x\n' },
      () => {
        throw new ColonnadeError('redis_unavailable', 'away');
      },
      async (_, lines) => lines.some((line) => line.includes('cannot be told')),
    );
    assert.deepEqual(left, ['a']);
    assert.doesNotMatch(logged, /masters told/u);
  });

  test('what is no list is left alone, and one that cannot be told does not hold up those after it', async () => {
    const asked: string[] = [];
    const { left } = await work(
      { 'a/x': 'east/w\n', b: 'west/x\n', c: 'east/y\n' },
      ({ master, minions }) => {
        if (master === 'west') throw new ColonnadeError('bad_request', 'no');
        asked.push(...minions);
      },
      async () => asked.length > 0,
    );
    assert.deepEqual(asked, ['y']);
    assert.deepEqual(left, ['a', 'b']);
  });

  test('what waited too long is dropped, and the log says so', async () => {
    const asked: string[] = [];
    const { logged } = await work(
      { old: 'east/x\neast/y\n', young: 'east/z\n' },
      ({ minions }) => asked.push(...minions),
      isEmpty,
    );
    assert.deepEqual(asked, ['z']);
    assert.match(logged, /"generation":"old","minions":2,"msg":"refresh dropped/u);
  });
});
