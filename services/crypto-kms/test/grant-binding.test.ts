import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Bus } from '@colonnade/bus';
import {
  ENDPOINTS,
  type GrantedEndpoint,
  kmsDeleteReader,
  kmsDestroyKey,
  kmsIssueMaster,
  kmsIssueTask,
  kmsMakeEnrolment,
  kmsOpenForApi,
  kmsPutReader,
  kmsReseal,
  kmsRevokeIdentity,
  kmsRotateKey,
  kmsSetMinVersion,
  kmsUndestroyKey,
  kmsVerifyForApi,
  rootTarget,
} from '@colonnade/contracts';
import { call, type PreparedKms, prepareKms, rejects } from './support.ts';

const { tgtType: tgt_type, tgtId: tgt_id, pillarenv } = rootTarget;
const context = { tgt_type, tgt_id, pillarenv, name: 'x' };
const other = { ...context, name: 'y' };
const workload = { kind: 'master', master: 'm1' } as const;
const reader = {
  token_id: 'a'.repeat(16),
  sub: 'ann',
  rights: ['reveal'] as const,
  reveal_scopes: [{ tgt_types: ['root'] as const }],
  grant_key_hex: '0'.repeat(64),
  expires_at_ms: 1_900_000_000_000,
};
const version = { name: 'pillars', version: 1 };
const versionChanges = [{ name: 'identity' }, { version: 2 }];

/** Of each endpoint a request, and what else somebody could want of the grant for it: every field is among them. */
const REQUESTS: readonly (readonly [GrantedEndpoint, Record<string, unknown>, readonly object[]])[] = [
  [kmsOpenForApi, { context, enc: 'a' }, [{ context: other }, { enc: 'b' }]],
  [kmsVerifyForApi, { context, enc: 'a' }, [{ context: other }, { enc: 'b' }]],
  [
    kmsReseal,
    { items: [{ from: context, to: other, enc: 'a' }] },
    [
      { items: [{ from: context, to: { ...other, name: 'z' }, enc: 'a' }] },
      { items: [{ from: other, to: context, enc: 'a' }] },
      { items: [{ from: context, to: other, enc: 'b' }] },
    ],
  ],
  [kmsIssueMaster, { master: 'm1', lifetime_s: 600 }, [{ master: 'm2' }, { lifetime_s: 601 }]],
  [kmsRevokeIdentity, { jti: 'x'.repeat(16) }, [{ jti: 'y'.repeat(16) }]],
  [
    kmsPutReader,
    reader,
    [
      { token_id: 'b'.repeat(16) },
      { sub: 'eve' },
      { rights: ['reveal', 'admin'] },
      { reveal_scopes: [{ tgt_types: ['root', 'task'] }] },
      { reveal_scopes: undefined },
      { grant_key_hex: '1'.repeat(64) },
      { expires_at_ms: null },
    ],
  ],
  [kmsDeleteReader, { token_id: 'a'.repeat(16) }, [{ token_id: 'b'.repeat(16) }]],
  [kmsRotateKey, { name: 'pillars' }, [{ name: 'identity' }]],
  [kmsSetMinVersion, version, versionChanges],
  [kmsDestroyKey, version, versionChanges],
  [kmsUndestroyKey, version, versionChanges],
  [kmsIssueTask, { task: 't1', template: 'deploy' }, [{ task: 't2' }, { template: 'other' }]],
  [
    kmsMakeEnrolment,
    { workload, sid: randomUUID(), lifetime_s: 60 },
    [{ workload: { ...workload, master: 'm2' } }, { sid: randomUUID() }, { lifetime_s: 61 }],
  ],
];

/** Whoever sees a grant on its way to crypto-kms has nothing else done with it, even with the nkey of pillar-api. */
describe('a grant', () => {
  let kms: PreparedKms;
  let thief: Bus;
  before(async () => {
    kms = await prepareKms();
    await kms.start({ KMS_ROOT_KEY_B64: randomBytes(32).toString('base64') });
    thief = await kms.bus.as('pillar-api');
  });
  after(() => kms[Symbol.asyncDispose]());

  test('is asked for by every endpoint of the table, and the table has them all', () => {
    const all = ENDPOINTS.filter((one) => one.grant !== undefined).map(({ subject }) => subject);
    assert.deepEqual(REQUESTS.map(([{ subject }]) => subject).sort(), all.sort());
    for (const [{ subject }, message, changes] of REQUESTS) {
      const changed = new Set(changes.flatMap((change) => Object.keys(change)));
      assert.deepEqual([...changed].sort(), Object.keys(message).sort(), subject);
    }
  });

  for (const [endpoint, message, changes] of REQUESTS)
    test(`for ${endpoint.subject} is good for exactly that request`, async () => {
      const { grant } = (await kms.granted(endpoint, message)) as { grant: string };
      for (const change of changes)
        await rejects(thief.request(endpoint, { ...message, ...change, grant }, call()), 'unauthorized');
      for (const [another, asked] of REQUESTS)
        if (another !== endpoint)
          await rejects(thief.request(another, { ...asked, grant }, call()), 'unauthorized');
    });

  test('that was refused has changed nothing', async () => {
    for (const [folder, count] of [
      ['readers', 1],
      ['revoked', 0],
      ['enrolments', 0],
      ['keyring/pillars', 1],
    ] as const)
      assert.equal((await readdir(path.join(kms.stateDir, folder))).length, count, folder);
  });
});
