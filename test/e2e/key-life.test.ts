import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { ColonnadeError } from '@colonnade/contracts';
import { type BridgeClient, type ServiceProcess, startService } from '@colonnade/embedded';
import { type EstateReader, openSqliteReader } from '@colonnade/estate-store';
import { fromPlain, toPlain } from '@colonnade/value';
import { callOffDeath, mortalEnv, orderDeath } from '../support/die-at.ts';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';
import { tempDir } from '../support/temp.ts';
import { waitFor } from '../support/wait-for.ts';

const SECRETS = 150;
/** At which change of what it keeps a process is killed, in each life of a key; `keyring-steps.test.ts` and `rewrap-steps.test.ts` try all. */
const STEPS = [1, 4, 7];
const KMS_ENV = { KMS_KEY_PREPUBLISH_S: '1', KMS_KEY_UNDO_S: '3600' };
const KMS = ['crypto-kms', 'crypto-kms-2'];
/** What a merge may be told while a process it needs is killed; anything else is a secret that cannot be read. */
const PASSING = new Set(['kms_unavailable', 'unavailable', 'expired']);

type Version = {
  name: string;
  version: number;
  kid: string;
  state: string;
  values: number;
  opens: boolean;
  active_from: string;
};
type Sample = { startMs: number; kid: string };
/** A process that can be told where to die, and is started anew when it has. */
type Mortal = { process: ServiceProcess; orderFile: string; back: Promise<void> };

describe('keys live and die under live merges, two replicas of the KMS, and kill -9 at every step', () => {
  let stack: TestStack;
  const mortals = new Map<string, Mortal>();
  let deaths = 0;
  let bridge: BridgeClient;
  let reader: EstateReader;
  const owned = new AsyncDisposableStack();
  const stopping = new AbortController();
  const faults: string[] = [];
  const samples: Sample[] = [];
  let merges = 0;
  let passing = 0;

  before(async () => {
    const orders = owned.use(await tempDir('orders')).path;
    const orderOf = (name: string) => path.join(orders, name);
    const env = async ({ name }: { name: string }): Promise<Record<string, string>> => {
      if (name === 'crypto-kms') return { ...KMS_ENV, ...mortalEnv(orderOf(name)) };
      if (name !== 'pillar-api') return {};
      return { REWRAP_PER_SECOND: '150', REWRAP_RUN_MS: '500', ...mortalEnv(orderOf(name)) };
    };
    stack = owned.use(await stackForTests({ mergers: 2, env }));
    const { dir, secrets, nats, storePath } = stack.stack;
    const name = 'crypto-kms';
    const second = owned.use(
      await startService({
        ...{ name, portVariable: 'OPS_PORT', logFile: path.join(dir, 'logs', 'crypto-kms-2.log') },
        env: {
          ...{ ...KMS_ENV, ...mortalEnv(orderOf('crypto-kms-2')) },
          ...{ NATS_URL: nats.url, NATS_NKEY_SEED_FILE: secrets.busNkeyFiles[name] },
          ...{ KMS_STATE_DIR: path.join(dir, 'kms'), PILLARS_KEK_FILE: secrets.kekFile },
          ...{ KMS_ROOT_KEY_FILE: secrets.rootKeyFile, BOOTSTRAP_TOKEN_FILE: secrets.adminTokenFile },
          ...{ OPS_HOST: '127.0.0.1', OPS_PORT: '0' },
        },
      }),
    );
    const { kms, api } = stack.stack;
    for (const [one, process] of Object.entries({
      'crypto-kms': kms,
      'crypto-kms-2': second,
      'pillar-api': api,
    })) {
      const mortal = { process, orderFile: orderOf(one), back: Promise.resolve() };
      mortals.set(one, mortal);
      startAnew(mortal);
    }
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
      // Who is refused does not ask again at once, and processes that start anew need the machine too.
      await delay(fault === '' ? 50 : 10);
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
      await delay(80);
    }
  }

  function startAnew(mortal: Mortal): void {
    void mortal.process.endedByItself().then(({ signal }) => {
      if (signal !== 'SIGKILL') faults.push(`${mortal.process.name} ended with ${signal}`);
      deaths += 1;
      mortal.back = bringBack(mortal);
    });
  }

  async function bringBack(mortal: Mortal): Promise<void> {
    const start = async () => {
      // One that is told to die while it starts is started once more.
      await callOffDeath(mortal.orderFile);
      await mortal.process.restart();
      return true;
    };
    await waitFor(`${mortal.process.name} to be back`, start, { limitMs: 30_000 });
    startAnew(mortal);
  }

  /** Asks while each process that makes so many changes meanwhile is killed by one and started anew; until what was asked for is so. */
  async function through(
    what: string,
    { step, names }: { step: number; names: readonly string[] },
    ask: () => Promise<unknown>,
    isSo: () => Promise<boolean>,
  ): Promise<void> {
    const order = { step, when: step % 2 === 1 ? 'before' : 'after', below: stack.stack.dir } as const;
    for (const name of names) await orderDeath((mortals.get(name) ?? assert.fail(name)).orderFile, order);
    await ask().catch(() => undefined);
    const again = async () => {
      if (await isSo().catch(() => false)) return true;
      await ask().catch(() => undefined);
      return undefined;
    };
    await waitFor(what, again, { limitMs: 60_000 });
    for (const { orderFile, back } of mortals.values()) {
      await callOffDeath(orderFile);
      await back;
    }
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
    for (const [life, step] of STEPS.entries()) {
      const [before, next] = [life + 1, life + 2];
      await through(
        `version ${next} is made`,
        { step, names: KMS },
        () => post('rotate'),
        async () => (await stateOf(next)) !== 'none',
      );
      await waitFor('it to seal', async () => ((await stateOf(next)) === 'active' ? true : undefined), {
        limitMs: 30_000,
      });
      await through(
        'the rewrap has ended',
        { step, names: [...KMS, 'pillar-api'] },
        () => post('rewrap'),
        async () => (await left()) === 0,
      );
      await through(
        `version ${before} opens nothing`,
        { step, names: [...KMS, 'pillar-api'] },
        () => post('min-version', { version: next }),
        async () => (await versions()).some((one) => one.version === before && !one.opens),
      );
      await through(
        `version ${before} is destroyed`,
        { step, names: KMS },
        () => post('destroy', { version: before }),
        async () => (await stateOf(before)) === 'destroyed',
      );
      await through(
        `version ${before} is taken back`,
        { step, names: KMS },
        () => post('undestroy', { version: before }),
        async () => (await stateOf(before)) === 'retired',
      );
      await post('destroy', { version: before });
    }
    stopping.abort();
    await Promise.all(busy);
    assert.deepEqual(faults.slice(0, 3), []);
    assert.ok(deaths >= 3 * STEPS.length, `${deaths} kills`);
    assert.ok(merges > 50 && passing < merges / 2, `${merges} merges, ${passing} of them not answered`);
    const all = await versions();
    assert.deepEqual(
      all.map(({ state, values }) => [state, values > 0]),
      [...STEPS.map(() => ['destroyed', false]), ['active', true]],
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
