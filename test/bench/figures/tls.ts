import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  createKubeClient,
  type KubeClient,
  MERGE_PATCH,
} from '../../../services/tls-rotator/src/kube/client.ts';
import { type Secret, secretPath } from '../../../services/tls-rotator/src/kube/objects.ts';
import { createSecretSync } from '../../../services/tls-rotator/src/secrets/sync.ts';
import {
  type TargetData,
  type TargetView,
  viewOf,
} from '../../../services/tls-rotator/src/secrets/target.ts';
import { writeKubeconfig } from '../../../services/tls-rotator/test/support.ts';
import { startKube } from '../../support/kube.ts';
import { tempDir } from '../../support/temp.ts';
import { against, type Figure } from '../figure.ts';
import { interleave, spreadOf } from '../measure.ts';

const NAMESPACES = 1000;
const WRITERS = 16;
const QUIET_PASSES = 100;
const SECRET = 'ingress-tls';

/** What a pass over many namespaces costs beyond the requests it cannot do without. */
export const tls: Figure = {
  name: 'tls',
  about:
    '1,000 Secrets brought to a new certificate, beside a bare loop of the same PATCHes; passes with nothing to do',
  async measure({ repeats, report }) {
    await using dir = await tempDir('bench-tls');
    await using kube = await startKube();
    const file = await writeKubeconfig(dir.path, { url: kube.url, ca: kube.ca, token: 'admin-token' });
    using client = createKubeClient(file);
    const names = Array.from({ length: NAMESPACES }, (_, i) => `n${i}`);
    const views = new Map<string, TargetView>();
    report(`${NAMESPACES} namespaces`);
    await eachOf(names, (name) => makeTarget(client, name));
    const relist = () => listInto(client, views);
    const ours = createTrial(client, names, views);
    let round = 0;
    const found = await interleave(repeats, {
      ours: async () => {
        await relist();
        round += 1;
        return ours.sync(material(round));
      },
      floor: async () => {
        await relist();
        round += 1;
        return bareLoop(client, names, views, material(round));
      },
    });
    await relist();
    const quiet = await quietPasses(ours, material(round));
    const common = { unit: 'ms', better: 'lower' } as const;
    return [
      against(
        {
          ...{ what: '1,000 Secrets written', ...common, ours: found.ours.ms, floor: found.floor.ms },
          floorIs: `the same PATCHes, ${WRITERS} at a time`,
        },
        { atMost: 1.5 },
      ),
      { what: '1,000 Secrets, nothing to write', ...common, ours: spreadOf(quiet.ms) },
      {
        what: `growth over ${QUIET_PASSES} such passes`,
        ...({ unit: 'MB', better: 'lower', ours: spreadOf([quiet.growthMb]) } as const),
        goal: { text: '≤ 5 MB', met: quiet.growthMb <= 5 },
      },
    ];
  },
};

async function makeTarget(client: KubeClient, name: string): Promise<void> {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  await client.request('POST', '/api/v1/namespaces', { body: namespace });
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/tls',
    metadata: { name: SECRET },
    data: material(0),
  };
  await client.request('POST', secretPath(name), { body: secret });
}

function material(round: number): TargetData {
  const text = (size: number) => Buffer.from(`${round} `.padEnd(size, 'x')).toString('base64');
  return { 'tls.crt': text(4000), 'tls.key': text(1700) };
}

function createTrial(client: KubeClient, names: readonly string[], views: Map<string, TargetView>) {
  let writes = 0;
  const nothing = () => {};
  const watcher = {
    targetMissing: nothing,
    targetWritten: () => {
      writes += 1;
    },
    targetFailed: nothing,
    targetContested: nothing,
  };
  const sync = createSecretSync(client, watcher, WRITERS);
  return {
    writes: () => writes,
    async sync(data: TargetData): Promise<{ ms: number }> {
      const startedMs = performance.now();
      const { counts } = await sync.run({
        ...{ owner: 'bench', secretName: SECRET, createIfMissing: false, data, isOurs: () => true },
        selection: { targets: names, terminating: [], absent: [] },
        targets: {
          get: (namespace) => views.get(namespace),
          note: (secret) => void views.set(secret.metadata.namespace ?? '', viewOf(secret)),
        },
      });
      if (counts.updated + counts.unchanged !== names.length) throw new Error(JSON.stringify(counts));
      return { ms: performance.now() - startedMs };
    },
  };
}

async function bareLoop(
  client: KubeClient,
  names: readonly string[],
  views: Map<string, TargetView>,
  data: TargetData,
) {
  const startedMs = performance.now();
  await eachOf(names, async (name) => {
    const body = { metadata: { resourceVersion: views.get(name)?.resourceVersion }, data };
    await client.request('PATCH', secretPath(name, SECRET), { body, type: MERGE_PATCH });
  });
  return { ms: performance.now() - startedMs };
}

async function quietPasses(trial: ReturnType<typeof createTrial>, data: TargetData) {
  await trial.sync(data);
  const [before, writes] = [heapMb(), trial.writes()];
  const ms: number[] = [];
  for (let i = 0; i < QUIET_PASSES; i += 1) ms.push((await trial.sync(data)).ms);
  if (trial.writes() !== writes) throw new Error('a pass with nothing to change has written');
  return { ms, growthMb: Math.max(0, heapMb() - before) };
}

/** What is still there after a collection. */
function heapMb(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed / 1e6;
}

async function listInto(client: KubeClient, views: Map<string, TargetView>): Promise<void> {
  const query = { fieldSelector: `metadata.name=${SECRET}` };
  const { items } = await client.request<{ items: readonly Secret[] }>('GET', '/api/v1/secrets', { query });
  for (const secret of items) views.set(secret.metadata.namespace ?? '', viewOf(secret));
}

async function eachOf(names: readonly string[], work: (name: string) => Promise<unknown>): Promise<void> {
  const queue = names.values();
  const worker = async () => {
    for (const name of queue) await work(name);
  };
  await Promise.all(Array.from({ length: WRITERS }, worker));
}
