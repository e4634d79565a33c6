import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { AUDIT_STREAM, auditSubject, decodeAuditMessage } from '@colonnade/contracts';
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

const SILENT = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, ResponseComplete, Panic]
rules:
- level: None
`;

describe('with a policy that wants nothing on record', () => {
  let world: ApiWorld;
  const dir = tempDir('audit-floors');
  let asked = 0;

  before(async () => {
    const file = path.join((await dir).path, 'policy.yaml');
    await writeFile(file, SILENT);
    world = await startWorld({ env: { AUDIT_POLICY_FILE: file }, kmsEnv: { AUDIT_POLICY_FILE: file } });
  });
  after(async () => {
    await world[Symbol.asyncDispose]();
    await (await dir)[Symbol.asyncDispose]();
  });

  /** Sends it, and finds both of its records. */
  async function onRecord(
    method: string,
    url: string,
    body?: object,
    headers: Record<string, string> = {},
  ): Promise<Awaited<ReturnType<typeof sendPlain>>> {
    asked += 1;
    const id = `floor-${asked}`;
    const answer = await sendPlain(world.admin, method, url, body, { ...headers, 'audit-id': id });
    const found = (await auditRecords(world.bus)).filter(({ auditID }) => auditID === id);
    assert.deepEqual(
      found.map(({ stage, level, user, annotations }) => [
        ...[stage, level, user.username, annotations?.['colonnade/floor']],
      ]),
      [
        ['RequestReceived', 'Metadata', 'bootstrap-admin', 'true'],
        ['ResponseComplete', 'Metadata', 'bootstrap-admin', 'true'],
      ],
      `${method} ${url}: ${answer.status} ${JSON.stringify(plain(answer))}`,
    );
    return answer;
  }

  test('who makes, replaces or removes a secret is', async () => {
    const secret = { name: 's', value: 'x', is_secret: true };
    const made = await onRecord('POST', '/pillars', { tgt_type: 'root', ...secret });
    const url = `/pillars/${plain(made).pid}`;
    await onRecord('PUT', url, { value: 'y' }, { 'if-match': etagOfAnswer(made) });
    await onRecord('DELETE', url, undefined, { 'if-match': etagOfAnswer(made) });
    await sendPlain(world.admin, 'POST', '/collections', { id: 'c', name: 'c' });
    const schema = { type: 'object', properties: { s: { type: 'string' } } };
    const template = { id: 't', name: 't', schema };
    const answer = await sendPlain(world.admin, 'POST', '/tasks/templates', template);
    assert.equal(answer.status, 201, JSON.stringify(plain(answer)));
    await onRecord('PUT', '/tasks/template/t/defaults', { pillars: [secret] });
    const task = await onRecord('POST', '/tasks', { tpl_id: 't', collections: ['c'], pillars: [secret] });
    assert.equal(task.status, 201, JSON.stringify(plain(task)));
    const tag = { 'if-match': etagOfAnswer(task) };
    await onRecord('DELETE', `/tasks/${plain(task).id}`, undefined, tag);
    await onRecord('DELETE', '/tasks/templates/t', undefined, { 'if-match': etagOfAnswer(answer) });
  });

  test('and who changes which masters and minions get it', async () => {
    for (const [method, url] of [
      ['PUT', '/masters/m'],
      ['PUT', '/masters/m/minions/i'],
      ['DELETE', '/masters/m/minions/i'],
      ['PATCH', '/collections/c'],
      ['DELETE', '/collections/c'],
      ['PUT', '/collections/c/rule'],
      ['DELETE', '/collections/c/rule'],
      ['POST', '/inventories'],
      ['POST', '/services'],
      ['PUT', '/services/s'],
      ['DELETE', '/services/s'],
    ] as const) {
      await onRecord(method, url, method === 'DELETE' ? undefined : {});
    }
  });

  test('who makes an owner, what places a secret, and what runs code', async () => {
    const made = await onRecord('POST', '/collections', { id: 'mine', name: 'mine' });
    assert.equal(made.status, 201, JSON.stringify(plain(made)));
    const template = await onRecord('POST', '/tasks/templates', { id: 'u', name: 'u', schema: true });
    assert.equal(template.status, 201, JSON.stringify(plain(template)));
    const tag = { 'if-match': etagOfAnswer(template) };
    await onRecord('PUT', '/tasks/templates/u', { name: 'v', schema: true }, tag);
    await onRecord('POST', '/generations', { all: true });
    await onRecord('POST', '/hooks/policy-generation-started/run', { dry_run: true });
  });

  test('what crypto-kms sealed says for whom', async () => {
    const user = 'jürgen %0a';
    const client = await world.as(['editor'], user);
    const body = { tgt_type: 'root', name: 'mine', value: 'x', is_secret: true };
    const made = await sendPlain(client, 'POST', '/pillars', body, { 'audit-id': 'sealed-for' });
    assert.equal(made.status, 201, JSON.stringify(plain(made)));
    const sealed = await waitFor('the record of the key service', async () =>
      (await readStream(world.bus, AUDIT_STREAM))
        .filter(({ subject }) => subject === auditSubject('crypto-kms'))
        .flatMap(({ data }) => [...decodeAuditMessage(data)])
        .find(({ verb, auditID }) => verb === 'seal' && auditID === 'sealed-for'),
    );
    assert.equal(sealed.user.username, 'pillar-api');
    assert.equal(sealed.annotations?.['colonnade/on-behalf-of'], user);
  });
});
