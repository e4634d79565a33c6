import { generateKeyPairSync, randomUUID } from 'node:crypto';
import path from 'node:path';
import {
  encode,
  TASK_BEAT_SUBJECT,
  taskStateSubject,
  WORKLOAD_AUDIENCE,
  WORKLOAD_TOKEN_TYP,
  zTaskBeat,
  zTaskEntry,
} from '@colonnade/contracts';
import { type EstateStore, openSqliteStore } from '@colonnade/estate-store';
import { createTaskView, createWorkloadVerifier } from '@colonnade/identity';
import { jwtVerify, SignJWT } from 'jose';
import { tempDir } from '../../support/temp.ts';
import { waitFor } from '../../support/wait-for.ts';
import { against, type Figure } from '../figure.ts';
import { inTurns } from '../measure.ts';

const ISSUER = 'https://colonnade.example';
const TASK = '0198f2d4-1c57';
const TASKS = 10_000;

/** More than a verifier remembers, so that each comes as a new one. */
const TOKENS = 4000;

/** Whose a token is, and whether it still is: of tokens that come for the first time, and of one that comes again. */
export const identity: Figure = {
  name: 'identity',
  about: 'identities of tasks checked a second, signature and state, beside bare jose in the same process',
  async measure({ repeats, trialMs }) {
    await using stack = new AsyncDisposableStack();
    const { path: dir } = stack.use(await tempDir('bench-identity'));
    const store = stack.use(await openSqliteStore({ path: path.join(dir, 'estate.sqlite') }));
    await makeTask(store);
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const keys = { issuer: async () => ISSUER, find: async () => ({ alg: 'EdDSA', publicKey }) as const };
    const verify = createWorkloadVerifier({ keys, audience: WORKLOAD_AUDIENCE });
    const view = stack.use(await openView());
    const tokens = await Promise.all(Array.from({ length: TOKENS }, () => sign(privateKey)));
    let at = 0;
    const next = () => {
      at = (at + 1) % TOKENS;
      return tokens[at] ?? '';
    };
    const [again = ''] = tokens;
    const rules = {
      algorithms: ['EdDSA'],
      issuer: ISSUER,
      audience: WORKLOAD_AUDIENCE,
      typ: WORKLOAD_TOKEN_TYP,
    };
    const found = await inTurns(repeats, trialMs, {
      bare: () => jwtVerify(next(), publicKey, rules),
      view: async () => view.requireLive((await verify(next())).sub.slice('task:'.length)),
      store: async () => askStore(store, (await verify(next())).sub),
      again: async () => askStore(store, (await verify(again)).sub),
    });
    const row = { unit: 'tokens/s', better: 'higher', floor: found.bare } as const;
    const floorIs = 'jose, the signature and the claims of RFC 7519 alone';
    return [
      ['verify, the state by a view of 10,000 tasks', found.view] as const,
      ['verify, the state by the estate (SQLite)', found.store] as const,
      ['the same, of a token that came before', found.again] as const,
    ].map(([what, ours]) => against({ ...row, floorIs, what, ours }, { atLeast: 0.7 }));
  },
};

async function askStore(store: Pick<EstateStore, 'getTask'>, sub: string): Promise<void> {
  const task = await store.getTask(sub.slice('task:'.length));
  if (task?.state !== 'created') throw new Error('the task does not live');
}

function sign(privateKey: ReturnType<typeof generateKeyPairSync>['privateKey']): Promise<string> {
  return new SignJWT({ colonnade: { kind: 'task', task: TASK, template: 'deploy', owner: 'ann' } })
    .setProtectedHeader({ alg: 'EdDSA', kid: 'k', typ: WORKLOAD_TOKEN_TYP })
    .setIssuer(ISSUER)
    .setSubject(`task:${TASK}`)
    .setAudience(WORKLOAD_AUDIENCE)
    .setIssuedAt()
    .setNotBefore('-5s')
    .setExpirationTime('15m')
    .setJti(randomUUID())
    .sign(privateKey);
}

/** A view as crypto-kms has it, of a bucket that beats. */
async function openView() {
  const payload = encode(zTaskEntry, { v: 1, live: true, expires_at_ms: null });
  const tasks = Array.from({ length: TASKS }, (_, at) => (at === 0 ? TASK : `task-${at}`));
  const entries = tasks.map((id, at) => ({ subject: taskStateSubject(id), seq: at + 1, payload }));
  let seq = TASKS;
  const read = async (afterSeq: number) => {
    seq += 1;
    const beat = { subject: TASK_BEAT_SUBJECT, seq, payload: encode(zTaskBeat, { v: 1, count: seq }) };
    return [...entries.slice(afterSeq), beat];
  };
  const view = createTaskView({ read });
  await waitFor('the view', () =>
    view.requireLive(TASK).then(
      () => true,
      () => false,
    ),
  );
  return view;
}

async function makeTask(store: Awaited<ReturnType<typeof openSqliteStore>>): Promise<void> {
  const minions = [{ master: 'm1', id: 'web-1' }];
  const master = { id: 'm1', envs: [], tokenIds: [], onUnknownMinion: 'register' } as const;
  const minion = { master: 'm1', id: 'web-1', collections: [], registeredBy: 'bench' };
  await store.write({
    by: 'bench',
    atMs: Date.now(),
    events: [],
    mutations: [
      { kind: 'master.put', expect: 'absent', record: master },
      { kind: 'minion.put', expect: 'absent', record: minion },
      { kind: 'template.put', expect: 'absent', record: { id: 'deploy', name: 'deploy', schema: true } },
      {
        kind: 'task.create',
        record: { id: TASK, templateId: 'deploy', minions, collections: [], expiresAtMs: undefined },
      },
    ],
  });
}
