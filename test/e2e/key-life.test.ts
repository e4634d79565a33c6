import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { ColonnadeError } from '@colonnade/contracts';
import { type BridgeClient, type ServiceProcess, startService } from '@colonnade/embedded';
import { type EstateReader, openSqliteReader } from '@colonnade/estate-store';
import { fromPlain, toPlain } from '@colonnade/value';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

const SECRETS = 150;
const KMS_ENV = { KMS_KEY_PREPUBLISH_S: '1', KMS_KEY_UNDO_S: '3600' };
/** What a merge may be told while a process it needs is killed; anything else is a secret that cannot be read. */
const PASSING = new Set(['kms_unavailable', 'unavailable', 'expired', 'internal']);

type Version = {
  name: string;
  version: number;
  kid: string;
  state: string;
  values: number;
  active_from: string;
};
type Sample = { startMs: number; kid: string };

describe('keys live and die under live merges, two replicas of the KMS, and kill -9 at every step', () => {
  let stack: TestStack;
  let second: ServiceProcess;
  let bridge: BridgeClient;
  let reader: EstateReader;
  const owned = new AsyncDisposableStack();
  const stopping = new AbortController();
  const faults: string[] = [];
  const samples: Sample[] = [];
  let merges = 0;
  let passing = 0;

  before(async () => {
    const env = async ({ name }: { name: string }): Promise<Record<string, string>> => {
      if (name === 'crypto-kms') return KMS_ENV;
      return name === 'pillar-api' ? { REWRAP_PER_SECOND: '150', REWRAP_RUN_MS: '500' } : {};
    };
    stack = owned.use(await stackForTests({ mergers: 2, env }));
    const { dir, secrets, nats, storePath } = stack.stack;
    const name = 'crypto-kms';
    second = owned.use(
      await startService({
        ...{ name, portVariable: 'OPS_PORT', logFile: path.join(dir, 'logs', 'crypto-kms-2.log') },
        env: {
          ...KMS_ENV,
          ...{ NATS_URL: nats.url, NATS_NKEY_SEED_FILE: secrets.busNkeyFiles[name] },
          ...{ KMS_STATE_DIR: path.join(dir, 'kms'), PILLARS_KEK_FILE: secrets.kekFile },
          ...{ KMS_ROOT_KEY_FILE: secrets.rootKeyFile, BOOTSTRAP_TOKEN_FILE: secrets.adminTokenFile },
          ...{ OPS_HOST: '127.0.0.1', OPS_PORT: '0' },
        },
      }),
    );
    bridge = stack.bridge(await stack.addMaster('m1'));
    reader = owned.use(await openSqliteReader({ path: storePath }));
    const write = writeEstate(stack.api);
    await write.collection('c0');
    await write.minion('m1', 'web', ['c0']);
    for (let i = 0; i < SECRETS; i += 1) {
      const place = i % 2 === 0 ? { tgt_type: 'root' } : { tgt_type: 'collection', collection_id: 'c0' };
      const body = { ...place, name: `s${i}`, value: `secret ${i}`, is_secret: true };
      await stack.api.call('POST', '/pillars', fromPlain(body));
    }
  });
  after(() => {
    stopping.abort();
    return owned.disposeAsync();
  });

  /** No answer in time is one of the ways to fail closed. */
  const merge = () =>
    bridge.ask({ minionId: 'web', pillarenv: 'auto', ttlMs: 5000 }).catch((thrown: ColonnadeError) => {
      if (thrown.code !== 'unavailable') throw thrown;
      return { ok: false as const, error: { code: thrown.code, message: thrown.message } };
    });
  const get = async (url: string) => toPlain((await stack.api.call('GET', url)).value ?? null) as never;
  const versions = async () =>
    ((await get('/keys')) as { items: Version[] }).items.filter(({ name }) => name === 'pillars');
  const post = (url: string, body?: object) =>
    stack.api.call('POST', `/keys/pillars/${url}`, body && fromPlain(body));

  /** Whole, with every secret as it was sealed. */
  function faultOf(reply: Awaited<ReturnType<typeof merge>>): string | undefined {
    if (!reply.ok) return PASSING.has(reply.error.code) ? '' : `${reply.error.code}: ${reply.error.message}`;
    const pillar = reply.pillar as { [name: string]: unknown };
    for (let i = 0; i < SECRETS; i += 1)
      if (pillar[`s${i}`] !== `secret ${i}`) return `s${i} is ${String(pillar[`s${i}`])}`;
    return undefined;
  }

  async function mergeAllTheTime(): Promise<void> {
    while (!stopping.signal.aborted) {
      const fault = faultOf(await merge());
      merges += 1;
      if (fault === '') passing += 1;
      else if (fault !== undefined) faults.push(fault);
    }
  }

  /** Seals all the time, and notes which key did. */
  async function sealAllTheTime(): Promise<void> {
    for (let i = 0; !stopping.signal.aborted; i += 1) {
      const name = `w${i}`;
      const startMs = Date.now();
      const body = { tgt_type: 'root', name, value: i, is_secret: true };
      const made = await stack.api.send('POST', '/pillars', fromPlain(body)).catch(() => undefined);
      if (made?.status === 201) {
        const { scopes } = await reader.snapshot({
          ...{ since: undefined, scopes: ['base'], collections: false },
          ...{ masters: [], minions: [] },
        });
        const found = [...scopes.values()].flat().find((one) => one.name === name);
        assert.ok(found !== undefined);
        samples.push({ startMs, kid: (found.value as { $enc: { kid: string } }).$enc.kid });
        const headers = { 'if-match': made.headers.get('etag') ?? '' };
        const pid = String((toPlain(made.value ?? null) as { pid: string }).pid);
        await stack.api.send('DELETE', `/pillars/${pid}`, undefined, headers).catch(() => undefined);
      }
      await delay(20);
    }
  }

  /** Asks while a process is killed and started anew; until what was asked for is so. */
  async function through(
    what: string,
    victim: ServiceProcess,
    ask: () => Promise<unknown>,
    isSo: () => Promise<boolean>,
  ) {
    const asked = ask().catch((thrown: ColonnadeError) => thrown);
    await victim.kill('SIGKILL');
    await Promise.all([asked, victim.restart()]);
    const again = async () => {
      if (await isSo().catch(() => false)) return true;
      await ask().catch(() => undefined);
      return undefined;
    };
    await waitFor(what, again, { limitMs: 60_000 });
    await wholeMerge(what);
  }

  async function wholeMerge(when: string): Promise<void> {
    const reply = await waitFor(
      `a whole merge, ${when}`,
      async () => {
        const now = await merge();
        return now.ok ? now : undefined;
      },
      { limitMs: 30_000 },
    );
    assert.equal(faultOf(reply), undefined, when);
  }

  const stateOf = async (version: number) =>
    (await versions()).find((one) => one.version === version)?.state ?? 'none';
  const left = async () => ((await get('/keys/pillars/rewrap')) as { left: number }).left;

  test('three lives of a key', { timeout: 300_000 }, async () => {
    const busy = [mergeAllTheTime(), sealAllTheTime()];
    const first = stack.stack.kms;
    for (let next = 2; next <= 4; next += 1) {
      const before = next - 1;
      await through(
        `version ${next} is made`,
        next % 2 === 0 ? first : second,
        () => post('rotate'),
        async () => (await stateOf(next)) !== 'none',
      );
      await waitFor('it to seal', async () => ((await stateOf(next)) === 'active' ? true : undefined), {
        limitMs: 30_000,
      });
      await through(
        'the rewrap is under way',
        second,
        () => post('rewrap'),
        async () => (await left()) < SECRETS * 2,
      );
      await through(
        'it has ended',
        stack.stack.api,
        () => post('rewrap'),
        async () => (await left()) === 0,
      );
      const kid = `pillars-v${before}`;
      await through(
        `version ${before} opens nothing`,
        first,
        () => post('min-version', { version: next }),
        async () =>
          (await versions()).some((one) => one.version === before && !(one as { opens?: boolean }).opens),
      );
      await through(
        `${kid} is destroyed`,
        second,
        () => post('destroy', { version: before }),
        async () => (await stateOf(before)) === 'destroyed',
      );
    }
    stopping.abort();
    await Promise.all(busy);
    assert.deepEqual(faults.slice(0, 3), []);
    assert.ok(merges > 50 && passing < merges / 2, `${merges} merges, ${passing} of them not answered`);
    const all = await versions();
    assert.deepEqual(
      all.map(({ state, values }) => [state, values > 0]),
      [
        ['destroyed', false],
        ['destroyed', false],
        ['destroyed', false],
        ['active', true],
      ],
    );
    // Sealed by a version that had a successor already when it was asked for.
    const late = samples.filter(({ startMs, kid }) => {
      const { version } = all.find((one) => one.kid === kid) ?? assert.fail(kid);
      const successor = all.find((one) => one.version === version + 1);
      return successor !== undefined && Date.parse(successor.active_from) <= startMs;
    });
    assert.ok(samples.length > 20, `${samples.length} seals`);
    assert.deepEqual(late, []);
  });
});
