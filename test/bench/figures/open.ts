import { randomBytes } from 'node:crypto';
import { type Bus, connectBus } from '@colonnade/bus';
import { encodeTree, kmsOpenForMerger, kmsSeal, startCall, zEnc } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import { against, type BenchOptions, type Figure, type Row } from '../figure.ts';
import { kekOf, makeEnvelope, openEnvelope } from '../floor/envelope.ts';
import { drive, interleave, loop, type Spread } from '../measure.ts';
import { type BenchStack, startBenchStack } from '../parts/bench-stack.ts';
import { startOpenBao } from '../parts/openbao.ts';

const CONCURRENCY = 16;
/** What a merge sends; what a large one may. */
const SMALL = 5;
const LARGE = 100;
const LOOP_IS = 'a bare node:crypto loop on one core, KeyObjects, nothing parsed';
const BAO_IS = 'OpenBao transit, decrypt';
/** Of a batch of a hundred, on one core. */
const BAO_REASON =
  'OpenBao does one AES-GCM operation an item, on every core, in Go; an envelope needs two, and node:crypto spends 6 µs on setting each of them up, so that one core stays below 50,000 whatever else it does. Keeping the opened keys of values would make it one: they must not outlive the merge. More replicas of crypto-kms are more cores';
const LOOP_REASON =
  'reading the request strictly, checking scope and base64 of each item, sealing the answer to its asker and the record take the rest';
const MINION = 'web-1.example';
const SECRET = 'a password of forty characters, or nearly';

/** Opening sealed values at crypto-kms over the bus, in the batches a merge sends and in large ones. */
export const open: Figure = {
  name: 'open',
  about: 'items opened a second by crypto-kms, beside a bare loop on one core and OpenBao transit',
  async measure(options) {
    await using bench = await startBenchStack('sqlite');
    await using bao = await startOpenBao();
    const rows: Row[] = [];
    for (const size of [SMALL, LARGE]) {
      const ours = await prepareOurs(bench, size);
      const sealed = await bao.seal(
        Array.from({ length: size }, () => Buffer.from(SECRET).toString('base64')),
      );
      const found = await interleave(options.repeats, {
        ours: () => itemsPerSecond(options, size, ours.open),
        bao: () => itemsPerSecond(options, size, () => bao.open(sealed)),
        bare: async () => ({ perSecond: bareLoop(options.trialMs) }),
      });
      const what = `open, batches of ${size}, ${CONCURRENCY} at once`;
      const row = { unit: 'items/s', better: 'higher', ours: found.ours.perSecond } as const;
      rows.push(...rowsOf(what, row, found.bao.perSecond, found.bare.perSecond, size === LARGE));
      await ours.bus[Symbol.asyncDispose]();
    }
    return rows;
  },
};

function rowsOf(
  what: string,
  row: Pick<Row, 'unit' | 'better' | 'ours'>,
  bao: Spread,
  bare: Spread,
  isLarge: boolean,
): Row[] {
  const beside = { ...row, what: `${what}, and OpenBao`, floor: bao, floorIs: BAO_IS, reason: BAO_REASON };
  const loop = { ...row, what, floor: bare, floorIs: LOOP_IS };
  return [
    against(beside, isLarge ? { called: 'level', atLeast: 0.9 } : { called: 'ahead', atLeast: 1 }),
    isLarge ? against({ ...loop, reason: LOOP_REASON }, { atLeast: 0.7 }) : loop,
  ];
}

async function itemsPerSecond({ trialMs }: BenchOptions, size: number, work: () => Promise<unknown>) {
  const { perSecond } = await drive({ concurrency: CONCURRENCY, ms: trialMs }, work);
  return { perSecond: perSecond * size };
}

/** A merger's side of the KMS, with values the KMS has sealed. */
async function prepareOurs(
  { stack, addMaster }: BenchStack,
  size: number,
): Promise<{ bus: Bus; open: () => Promise<void> }> {
  const master = `open-${size}`;
  const { token } = await addMaster(master);
  const as = (user: 'pillar-api' | 'pillar-merger') =>
    connectBus({
      ...{ servers: stack.nats.url, user, nkeySeed: stack.secrets.busNkeys[user].seed, name: 'bench' },
      logger: { info: () => {}, warn: () => {}, error: () => {} },
    });
  const contexts = Array.from({ length: size }, (_, i) => ({
    ...({ tgt_type: 'minion', tgt_id: MINION, name: `secret_${i}` } as const),
    pillarenv: `minion_id:${MINION};master:${master}`,
  }));
  const api = await as('pillar-api');
  const request = { items: contexts.map((context) => ({ context, value: SECRET })) };
  const { items: sealed } = await api.request(kmsSeal, request, startCall(5000));
  await api[Symbol.asyncDispose]();
  const items = sealed.map((item, i) => {
    if (!item.ok) throw new Error(item.error.message);
    return { context: contexts[i] as (typeof contexts)[number], enc: encodeTree(zEnc, item.result) as Value };
  });
  const bus = await as('pillar-merger');
  return {
    bus,
    async open() {
      const message = { token, master, minion_id: MINION, items };
      const answer = await bus.request(kmsOpenForMerger, message, startCall(10_000));
      for (const item of answer.items)
        if (!item.ok) throw new Error(`an item was not opened: ${item.error.code}`);
    },
  };
}

function bareLoop(ms: number): number {
  const kek = kekOf(randomBytes(32).toString('base64'));
  const envelopes = Array.from({ length: 100 }, (_, i) =>
    makeEnvelope(kek, `minion:${MINION}:secret_${i}`, SECRET),
  );
  return loop(ms, () => void envelopes.map((one) => openEnvelope(kek, one)), envelopes.length);
}
