import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { openSqliteStore } from '@colonnade/estate-store';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ApiWorld, plain, sendPlain, startWorld } from './support.ts';

const PILLARS = 100_000;
const CHUNK_LINES = 500;
/** Some thirty megabytes of body, and thrice that as objects, if it were held. */
const TEXT = 'x'.repeat(200);
/** Peak of the resident memory of the process, which itself takes a good hundred; MiB. */
const MAX_RSS_MIB = 450;

/** Lines of pillars, a secret among a hundred; pauses at `gate` until it is opened. */
async function* lines(gate?: { at: number; open: Promise<void> }): AsyncGenerator<Buffer> {
  for (let i = 0; i < PILLARS; i += CHUNK_LINES) {
    if (gate !== undefined && i >= gate.at) await gate.open;
    const chunk = Array.from({ length: CHUNK_LINES }, (_, n) => {
      const secret = (i + n) % 100 === 0 ? ',"is_secret":true' : '';
      return `{"kind":"pillar","tgt_type":"root","name":"n${i + n}","value":"${i + n} ${TEXT}"${secret}}\n`;
    });
    yield Buffer.from(chunk.join(''));
  }
}

function post(world: ApiWorld, body: AsyncIterable<Uint8Array>): Promise<Response> {
  return fetch(new URL('/import', world.api.url), {
    method: 'POST',
    headers: { authorization: `Bearer ${world.adminToken}`, 'content-type': 'application/x-ndjson' },
    body: ReadableStream.from(body) as never,
    duplex: 'half',
  } as RequestInit);
}

/** What is in the file, looked at from outside. */
function counted(world: ApiWorld): { pillars: number; versions: number; staged: number; tick: number } {
  using db = new DatabaseSync(world.storePath, { readOnly: true, timeout: 5000 });
  const count = (sql: string) => Number((db.prepare(sql).get() as { n: number }).n);
  return {
    pillars: count('SELECT count(*) AS n FROM pillars'),
    versions: count('SELECT count(*) AS n FROM pillar_versions'),
    staged: count('SELECT count(*) AS n FROM import_rows'),
    tick: count('SELECT tick AS n FROM meta'),
  };
}

async function peakMib(pid: number): Promise<number> {
  const kib = /VmHWM:\s+(\d+) kB/u.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) / 1024;
}

async function killed(world: ApiWorld, request: Promise<Response>): Promise<void> {
  await world.api.kill('SIGKILL');
  await assert.rejects(request);
  await world.api.restart();
}

describe('an import of 100,000 pillars', () => {
  test('killed in the middle it leaves nothing, else all of it is there; its memory is bounded', {
    timeout: 600_000,
  }, async (t) => {
    await using world = await startWorld();
    const { tick } = counted(world);

    // While it is staged.
    const never = Promise.withResolvers<void>();
    const first = post(world, lines({ at: PILLARS / 2, open: never.promise }));
    first.catch(() => undefined);
    await waitFor('half of it to be staged', async () => counted(world).staged >= PILLARS / 2 - CHUNK_LINES, {
      limitMs: 200_000,
    });
    await killed(world, first);
    const left = counted(world);
    assert.deepEqual([left.pillars, left.versions, left.tick], [0, 0, tick]);
    const found = plain(await sendPlain(world.admin, 'POST', '/pillars/search', {}));
    assert.deepEqual(found.items, []);
    {
      await using store = await openSqliteStore({ path: world.storePath });
      assert.equal(await store.sweepImports(-60_000), 1);
    }
    assert.equal(counted(world).staged, 0);

    // When all of it is staged: before the switch, in it, or after it.
    const second = post(world, lines());
    second.catch(() => undefined);
    await waitFor('all of it to be staged', async () => counted(world).staged === PILLARS, {
      limitMs: 200_000,
    });
    await killed(world, second);
    const after = counted(world);
    assert.ok(after.pillars === 0 || after.pillars === PILLARS, `${after.pillars} pillars`);
    assert.deepEqual([after.versions, after.tick], [after.pillars, after.pillars === 0 ? tick : tick + 1]);
    t.diagnostic(`killed at the switch: ${after.pillars} pillars`);

    // In peace. What the kill let through is changed by nothing but the secrets.
    if (after.pillars > 0) return;
    const answer = await post(world, lines());
    assert.equal(answer.status, 200, await answer.text());
    const done = counted(world);
    assert.deepEqual([done.pillars, done.versions, done.tick], [PILLARS, PILLARS, tick + 1]);
    const mib = await peakMib(world.api.pid);
    t.diagnostic(`peak of resident memory: ${Math.round(mib)} MiB`);
    assert.ok(mib < MAX_RSS_MIB, `${mib} MiB`);
    const raw = await readFile(world.storePath);
    assert.ok(!raw.includes(`"100 ${TEXT.slice(0, 100)}`), 'no plaintext of a secret is in the file');
  });
});
