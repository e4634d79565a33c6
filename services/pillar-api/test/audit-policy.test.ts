import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { AUDIT_STREAM, auditSubject, decodeAuditMessage } from '@colonnade/contracts';
import { findTraces } from '../../../test/support/search-traces.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import {
  type ApiWorld,
  auditRecords,
  etagOfAnswer,
  plain,
  readStream,
  sendPlain,
  startWorld,
} from './support.ts';

const POLICY = `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  nonResourceURLs: ["/healthz", "/readyz"]
- level: None
  resources: [{group: colonnade, resources: [masters, pillars/import, pillars/export]}]
- level: RequestResponse
`;
const SECRETS = [
  'stored-secret-0123',
  'refused-secret-4567',
  'refused-create-89ab',
  'unsealed-secret-cdef',
] as const;

describe('with a policy that asks for every body', () => {
  let world: ApiWorld;
  let pid = '';
  const shown: string[] = [];
  const dir = tempDir('audit-policy');

  before(async () => {
    const file = path.join((await dir).path, 'policy.yaml');
    await writeFile(file, POLICY);
    world = await startWorld({ env: { AUDIT_POLICY_FILE: file } });
    const { admin } = world;
    await sendPlain(admin, 'POST', '/collections', { id: 'c1', name: 'one' });
    const target = { tgt_type: 'collection', collection_id: 'c1' };
    const secret = { ...target, name: 'password', value: SECRETS[0], is_secret: true };
    const made = await sendPlain(admin, 'POST', '/pillars', secret);
    pid = String(plain(made).pid);
    const ifMatch = { 'if-match': etagOfAnswer(made) };
    assert.equal(
      (await sendPlain(admin, 'PUT', `/pillars/${pid}`, { value: SECRETS[1] }, ifMatch)).status,
      409,
    );
    await sendPlain(admin, 'POST', '/pillars', { ...secret, unknown: 1 });
    const twin = { ...target, name: 'password', value: SECRETS[2] };
    assert.equal((await sendPlain(admin, 'POST', '/pillars', twin)).status, 409);
    const former = await sendPlain(admin, 'POST', '/pillars', {
      ...secret,
      name: 'former',
      value: SECRETS[3],
    });
    const unseal = `/pillars/${plain(former).pid}/unseal`;
    const shownNow = await sendPlain(admin, 'POST', unseal, undefined, { 'if-match': etagOfAnswer(former) });
    assert.equal(plain(shownNow).value, SECRETS[3]);
    assert.equal(plain(await admin.send('POST', `/pillars/${pid}/reveal`)).value, SECRETS[0]);
    const token = plain(await sendPlain(admin, 'POST', '/tokens', { sub: 'x', roles: ['viewer'] }));
    const master = plain(await sendPlain(admin, 'POST', '/masters', { id: 'm1' }));
    const { token: masterToken, bridge } = master as never as {
      token: { token: string };
      bridge: { redis_password: string };
    };
    shown.push(String(token.token).split('_').slice(2).join('_'), masterToken.token, bridge.redis_password);
    await sendPlain(admin, 'POST', '/pillars', { tgt_type: 'root', name: 'open', value: 'plain-value' });
    await admin.send('GET', '/masters');
    await admin.send('GET', `/pillars/${pid}`);
    await fetch(new URL('/healthz', world.api.url));
    const authorization = `Bearer ${world.adminToken}`;
    const text = await (
      await fetch(new URL('/export', world.api.url), { headers: { authorization } })
    ).text();
    assert.match(text, /\$enc/u);
    const headers = { authorization, 'content-type': 'application/yaml' };
    const url = new URL('/import?dry_run=true', world.api.url);
    assert.equal((await fetch(url, { method: 'POST', headers, body: text })).status, 200);
    // The record of a read is stored in the background.
    const isRead = async () =>
      (await auditRecords(world.bus)).some((r) => r.verb === 'get' && r.stage.endsWith('Complete'));
    await waitFor('the last record', isRead);
  });
  after(async () => {
    await world[Symbol.asyncDispose]();
    await (await dir)[Symbol.asyncDispose]();
  });

  test('no secret is in any record', async () => {
    const records = await auditRecords(world.bus);
    const text = JSON.stringify(records, (_, x) => (typeof x === 'bigint' ? String(x) : x));
    assert.ok(shown.every((secret) => secret.length > 20));
    assert.deepEqual(findTraces('AUDIT', Buffer.from(text), [...SECRETS, ...shown]), []);
    assert.ok(text.includes('plain-value'), 'what is no secret is there');
    assert.ok(records.some((r) => r.responseObject !== undefined && r.objectRef?.subresource === 'reveal'));
  });

  test('a pillar is named by its target and its name, however it was asked for', async () => {
    const ofPillar = (await auditRecords(world.bus)).filter((r) => r.objectRef?.resource === 'pillars');
    const refs = ofPillar.filter((r) => r.objectRef?.name === 'password').map((r) => r.objectRef);
    assert.ok(refs.length >= 8);
    assert.ok(refs.every((ref) => ref?.namespace === 'collection:c1' && ref.apiGroup === 'colonnade'));
    assert.ok(refs.some((ref) => ref?.uid === pid && ref.subresource === 'reveal'));
  });

  test('what the policy leaves out is left out, but for the making of a master', async () => {
    const records = await auditRecords(world.bus);
    assert.ok(!records.some((r) => r.requestURI === '/healthz'));
    const ofMasters = records.filter((r) => r.objectRef?.resource === 'masters');
    assert.deepEqual(
      ofMasters.map((r) => [r.verb, r.level, r.stage]),
      [
        ['create', 'Metadata', 'RequestReceived'],
        ['create', 'Metadata', 'ResponseComplete'],
      ],
    );
  });

  test('nor an import and an export, which carry a whole estate: both stages, and no bodies', async () => {
    const records = (await auditRecords(world.bus)).filter(({ objectRef }) =>
      /^(?:im|ex)port$/u.test(objectRef?.subresource ?? ''),
    );
    assert.deepEqual(
      records.map((r) => [
        r.verb,
        r.objectRef?.subresource,
        r.level,
        r.stage,
        r.annotations?.['colonnade/floor'],
      ]),
      [
        ['get', 'export', 'Metadata', 'RequestReceived', 'true'],
        ['get', 'export', 'Metadata', 'ResponseComplete', 'true'],
        ['create', 'import', 'Metadata', 'RequestReceived', 'true'],
        ['create', 'import', 'Metadata', 'ResponseComplete', 'true'],
      ],
    );
    assert.ok(records.every((r) => r.requestObject === undefined && r.responseObject === undefined));
  });

  test('what the KMS did for a request bears the Audit-ID of that request, and says who and what', async () => {
    const [asked] = (await auditRecords(world.bus)).filter((r) => r.objectRef?.subresource === 'reveal');
    const ofKms = (await readStream(world.bus, AUDIT_STREAM))
      .filter(({ subject }) => subject === auditSubject('crypto-kms'))
      .flatMap(({ data }) => [...decodeAuditMessage(data)]);
    const opened = ofKms.filter(({ verb, objectRef }) => verb === 'reveal' && objectRef?.name === 'password');
    assert.deepEqual(
      opened.map(({ auditID, user, objectRef }) => [auditID, user.username, objectRef?.name]),
      [[asked?.auditID, 'bootstrap-admin', 'password']],
    );
    assert.ok(ofKms.some(({ verb, auditID }) => verb === 'seal' && auditID !== asked?.auditID));
  });

  test('an Audit-ID that is repeated loses no record of the KMS either', async () => {
    const before = (await readStream(world.bus, AUDIT_STREAM)).length;
    for (let i = 0; i < 3; i += 1) {
      const answer = await world.admin.send('POST', `/pillars/${pid}/reveal`, undefined, {
        'audit-id': 'again',
      });
      assert.equal(answer.headers.get('audit-id'), 'again');
    }
    const added = (await readStream(world.bus, AUDIT_STREAM))
      .slice(before)
      .flatMap(({ data }) => [...decodeAuditMessage(data)]);
    assert.equal(added.filter(({ verb, auditID }) => verb === 'reveal' && auditID === 'again').length, 3);
  });
});
