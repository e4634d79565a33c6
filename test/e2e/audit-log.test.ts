import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fromPlain, parseValue, toPlain, type Value } from '@colonnade/value';
import { startWebhook, writeKubeconfig } from '../support/fake-webhook.ts';
import { stackForTests, type TestStack } from '../support/stack.ts';
import { tempDir } from '../support/temp.ts';
import { waitFor } from '../support/wait-for.ts';

const FAST_WEBHOOK = { AUDIT_WEBHOOK_BATCH_MAX_WAIT_MS: '100' };

type Line = {
  auditID: string;
  stage: string;
  verb: string;
  objectRef?: { resource?: string };
  user: { username: string };
};

describe('the audit log of a whole Colonnade', () => {
  let stack: TestStack;
  before(async () => {
    stack = await stackForTests();
  });
  after(() => stack[Symbol.asyncDispose]());

  const lines = async () =>
    (await readFile(stack.stack.auditLog, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);

  test('has a write with both its stages, also one made while the sink was dead', async () => {
    const { api } = stack;
    await api.call('POST', '/collections', fromPlain({ id: 'web', name: 'web' }));
    await stack.stack.sink.kill('SIGKILL');
    await api.call('POST', '/collections', fromPlain({ id: 'db', name: 'db' }));
    await stack.stack.sink.restart();
    const writes = await waitFor('both writes', async () => {
      const found = (await lines()).filter(
        (l) => l.verb === 'create' && l.objectRef?.resource === 'collections',
      );
      return found.length >= 4 ? found : undefined;
    });
    const byId = Map.groupBy(writes, ({ auditID }) => auditID);
    assert.equal(byId.size, 2);
    for (const stages of byId.values())
      assert.deepEqual(stages.map((s) => s.stage).sort(), ['RequestReceived', 'ResponseComplete']);
    assert.ok(writes.every(({ user }) => user.username === 'bootstrap-admin'));
  });
});

describe('the example of docs/audit.md', () => {
  let stack: TestStack;
  let webhook: Awaited<ReturnType<typeof startWebhook>>;
  const owned = new AsyncDisposableStack();
  before(async () => {
    const dir = owned.use(await tempDir('audit-example'));
    const [policy] = await yamlOf('docs/audit.md');
    const auditPolicyFile = path.join(dir.path, 'policy.yaml');
    await writeFile(auditPolicyFile, policy ?? '');
    webhook = owned.use(await startWebhook());
    const auditWebhookFile = await writeKubeconfig(dir.path, { server: webhook.url });
    stack = owned.use(await stackForTests({ auditPolicyFile, auditWebhookFile, env: FAST_WEBHOOK }));
  });
  after(() => owned.disposeAsync());

  test('is on record as it says, in the log and at the webhook', async () => {
    const { api } = stack;
    const create = (name: string, more: object) =>
      api.call('POST', '/pillars', fromPlain({ tgt_type: 'root', name, ...more }));
    await create('motd_today', { value: 'good morning' });
    const made = await create('db_password', { value: 's3cret', is_secret: true });
    const { pid } = toPlain(made.value ?? null) as { pid: string };
    await api.call('POST', `/pillars/${pid}/reveal`);
    await api.call('GET', '/collections');

    const ofUser = (events: readonly Value[]) =>
      events
        .map((event) => toPlain(event) as unknown as Recorded)
        .filter(({ user, userAgent }) => user.username === 'bootstrap-admin' && userAgent !== 'pillar-api')
        .map(({ verb, stage, objectRef = {}, ...bodies }) => ({
          what: [verb, objectRef.subresource, objectRef.name, stage].filter(Boolean).join(' '),
          request: (bodies.requestObject as { value?: unknown } | undefined)?.value,
          response: (bodies.responseObject as { value?: unknown } | undefined)?.value,
        }));
    // All three have a floor, so the stage that the policy omits is there.
    const begun = (what: string) => ({ what, request: undefined, response: undefined });
    const wanted = [
      begun('create motd_today RequestReceived'),
      { what: 'create motd_today ResponseComplete', request: 'good morning', response: 'good morning' },
      begun('create db_password RequestReceived'),
      { what: 'create db_password ResponseComplete', request: '*******', response: '*******' },
      begun('create reveal db_password RequestReceived'),
      { what: 'create reveal db_password ResponseComplete', request: undefined, response: undefined },
    ];
    const inLog = async () => (await readFile(stack.stack.auditLog, 'utf8')).trimEnd().split('\n');
    const logged = await waitFor('the log', async () => {
      const found = ofUser((await inLog()).map((line) => parseValue(line)));
      return found.length >= wanted.length ? found : undefined;
    });
    assert.deepEqual(logged, wanted);
    const sent = await waitFor('the webhook', () => {
      const found = ofUser(webhook.taken);
      return found.length >= wanted.length ? found : undefined;
    });
    assert.deepEqual(sent, wanted);
    assert.ok(!(await inLog()).join('').includes('s3cret'));
  });
});

test('every metric that docs/audit.md tells to watch is there from the start', async () => {
  await using stack = await stackForTests();
  const page = await readFile(path.join(import.meta.dirname, '../../docs/audit.md'), 'utf8');
  const namesIn = (text: string) => new Set(text.match(/colonnade_audit_[a-z_]+(?:\{[a-z]+="[a-z]+"\})?/gu));
  const rules = (await yamlOf('docs/audit.md')).at(-1) ?? '';
  assert.ok(namesIn(rules).size >= 8);
  const told = await waitFor('the sink to look at the stream', async () => {
    const text = await (await fetch(`${stack.stack.sink.url}/metrics`)).text();
    return text.includes('colonnade_audit_sink_lag{') ? text : undefined;
  });
  for (const name of namesIn(page)) assert.ok(told.includes(`# TYPE ${name.split('{', 1)[0]} `), name);
  for (const name of namesIn(rules)) {
    const [, metric = '', label = ''] = /^([a-z_]+)(?:\{(.*)\})?$/u.exec(name) ?? [];
    assert.ok(
      told.split('\n').some((line) => line.startsWith(metric) && line.includes(label)),
      name,
    );
  }
});

type Recorded = {
  verb: string;
  stage: string;
  user: { username: string };
  userAgent?: string;
  objectRef?: { subresource?: string; name?: string };
  requestObject?: unknown;
  responseObject?: unknown;
};

/** The blocks of YAML of a page, in their order. */
async function yamlOf(page: string): Promise<string[]> {
  const text = await readFile(path.join(import.meta.dirname, '../..', page), 'utf8');
  return [...text.matchAll(/```yaml\n(.*?)```/gsu)].map(([, block]) => block ?? '');
}
