import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import {
  type CloudEvent,
  decode,
  EVENTS_STREAM,
  kmsDestroyKey,
  kmsRotateKey,
  kmsSetMinVersion,
  kmsUndestroyKey,
  subjectOfEvent,
  zCloudEvent,
} from '@colonnade/contracts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { call, type PreparedKms, prepareKms } from './support.ts';

let kms: PreparedKms;
let api: Bus;
before(async () => {
  kms = await prepareKms();
  api = await kms.bus.as('pillar-api');
});
after(() => kms[Symbol.asyncDispose]());

const ROOT = { KMS_ROOT_KEY_B64: randomBytes(32).toString('base64'), KMS_KEY_PREPUBLISH_S: '1' };
const LIMIT = { limitMs: 20_000 };
const rotate = async () =>
  api.request(kmsRotateKey, await kms.granted(kmsRotateKey, { name: 'pillars' }), call());
type KeyDecision = typeof kmsSetMinVersion | typeof kmsDestroyKey | typeof kmsUndestroyKey;
const asked = (endpoint: KeyDecision, version: number) => kms.granted(endpoint, { name: 'pillars', version });
const setMinVersion = async (version: number) =>
  api.request(kmsSetMinVersion, await asked(kmsSetMinVersion, version), call());

/** Every event in the stream, with its subject. */
async function stored(): Promise<{ subject: string; event: CloudEvent }[]> {
  const witness = await kms.bus.witness();
  const info = await witness.request(`$JS.API.STREAM.INFO.${EVENTS_STREAM}`);
  const { messages } = info.json<{ state: { messages: number } }>().state;
  const found: { subject: string; event: CloudEvent }[] = [];
  for (let seq = 1; seq <= messages; seq += 1) {
    const answer = await witness.request(`$JS.API.STREAM.MSG.GET.${EVENTS_STREAM}`, JSON.stringify({ seq }));
    const { subject, data } = answer.json<{ message: { subject: string; data: string } }>().message;
    found.push({ subject, event: decode(zCloudEvent, Buffer.from(data, 'base64')) });
  }
  await witness.close();
  return found;
}

const short = ({ type, data }: CloudEvent) => {
  const { version, min_version } = data as { version?: bigint; min_version?: bigint };
  return `${type.split('.')[2]} ${version ?? min_version}`;
};
const told = async () => (await stored()).map(({ event }) => short(event));
const untilTold = (what: string) => waitFor(what, async () => (await told()).includes(what), LIMIT);

test('what becomes of a version is told, each once, by two replicas', async () => {
  await using _one = await kms.start(ROOT);
  await using _two = await kms.start(ROOT);
  const { version } = await rotate();
  await untilTold('rotated 2');
  await untilTold('activated 2');
  await setMinVersion(2);
  await untilTold('barred 2');
  await api.request(kmsDestroyKey, await asked(kmsDestroyKey, 1), call());
  await untilTold('destroyed 1');
  await api.request(kmsUndestroyKey, await asked(kmsUndestroyKey, 1), call());
  await untilTold('undestroyed 1');
  await setMinVersion(1);
  await untilTold('unbarred 1');
  await rotate();
  await untilTold('activated 3');
  assert.deepEqual(await told(), [
    ...['rotated 2', 'retired 1', 'activated 2', 'barred 2', 'destroyed 1', 'undestroyed 1', 'unbarred 1'],
    ...['rotated 3', 'retired 2', 'activated 3'],
  ]);
  for (const { subject, event } of await stored()) {
    assert.equal(subject, subjectOfEvent(event));
    assert.deepEqual([event.subject, event.clock], ['/keys/pillars', '0']);
  }
  const activated = (await stored()).find(({ event }) => short(event) === 'activated 2')?.event;
  assert.equal(activated?.time, new Date(version.active_from_ms).toISOString());
  assert.deepEqual(
    { ...(activated?.data as object) },
    {
      ...{ key: 'pillars', version: 2n, kid: 'pillars-v2', active_from: activated?.time, erase_after: null },
    },
  );
});

test('nothing is told twice after a restart; a rotation by age is told', async () => {
  const before = await told();
  await using _service = await kms.start({ ...ROOT, KMS_KEY_MAX_AGE_S: '1' });
  await untilTold('rotated 4');
  assert.deepEqual((await told()).slice(0, before.length + 1), [...before, 'rotated 4']);
});

test('what the stream does not take is told when it does, also after a restart; the change does not wait', async () => {
  const next = await (async () => {
    await using _service = await kms.start(ROOT);
    // What the test before has rotated has to become active first.
    await waitFor('no version to wait', async () => {
      const newest = (await told()).findLast((one) => one.startsWith('rotated'))?.slice('rotated '.length);
      return (await told()).includes(`activated ${newest}`);
    });
    const witness = await kms.bus.witness();
    await witness.request(`$JS.API.STREAM.DELETE.${EVENTS_STREAM}`);
    await witness.close();
    const { version } = await rotate();
    await waitFor('the fault', () => kms.logLines.some((line) => line.includes('cannot be told')), LIMIT);
    return version.version;
  })();
  const MIB = 1024 * 1024;
  const provisioner = await kms.bus.as('provisioner');
  await provisioner.provisionStreams({ maxEventsBytes: 16 * MIB, maxAuditBytes: 16 * MIB, replicas: 1 });
  await using _service = await kms.start(ROOT);
  await untilTold(`activated ${next}`);
  assert.deepEqual(await told(), [`rotated ${next}`, `retired ${next - 1}`, `activated ${next}`]);
});

test('a file of what was told that cannot be read keeps it from starting, and is left as it is', async () => {
  const file = path.join(kms.stateDir, 'keys-told', 'pillars.json');
  await writeFile(file, '{');
  await assert.rejects(kms.start(ROOT), { code: 'misconfigured', message: /keys-told.pillars\.json/u });
});
