import assert from 'node:assert/strict';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fromPlain } from '@colonnade/value';
import { startWebhook, writeKubeconfig } from '../support/fake-webhook.ts';
import { stackForTests, type TestStack } from '../support/stack.ts';
import { tempDir } from '../support/temp.ts';
import { waitFor } from '../support/wait-for.ts';

const LIMIT = { limitMs: 60_000 };

describe('hooks of what happens to the keys and to the audit, as it happens', () => {
  const owned = new AsyncDisposableStack();
  let world: TestStack;
  let webhook: Awaited<ReturnType<typeof startWebhook>>;
  let out: string;
  before(async () => {
    const dir = owned.use(await tempDir('own-hooks')).path;
    out = path.join(dir, 'out');
    webhook = owned.use(await startWebhook());
    const auditWebhookFile = await writeKubeconfig(dir, { server: webhook.url });
    const env = async ({ name }: { name: string }): Promise<Record<string, string>> => {
      if (name === 'crypto-kms') return { KMS_KEY_PREPUBLISH_S: '1', KMS_IDENTITY_KEY_MAX_AGE_S: '5' };
      if (name !== 'audit-sink') return {};
      return {
        AUDIT_WEBHOOK_MAX_BACKLOG: '20',
        AUDIT_WEBHOOK_INITIAL_BACKOFF_MS: '50',
        AUDIT_WEBHOOK_BATCH_MAX_WAIT_MS: '50',
      };
    };
    world = owned.use(await stackForTests({ env, auditWebhookFile }));
    const script =
      '#!/bin/sh\nprintf "%s %s %s\\n" "$COLONNADE_EVENT_TYPE" "$COLONNADE_EVENT_SUBJECT" "$COLONNADE_EVENT_DATA"';
    for (const event of ['key-changed', 'audit-alert']) {
      const file = path.join(world.stack.hooksDir, event, '20-tell');
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, `${script} >> ${out}\n`);
      await chmod(file, 0o755);
    }
  });
  after(() => owned.disposeAsync());
  const ran = async () => (await readFile(out, 'utf8').catch(() => '')).split('\n').slice(0, -1);
  const untilRan = (pattern: RegExp) =>
    waitFor(String(pattern), async () => (await ran()).find((line) => pattern.test(line)), LIMIT);

  test('a key that is rotated by hand, and becomes the one that seals', async () => {
    await world.api.call('POST', '/keys/pillars/rotate');
    await untilRan(/^colonnade\.key\.rotated\.v1 \/keys\/pillars \{.*"version":2\}/u);
    await untilRan(/^colonnade\.key\.activated\.v1 \/keys\/pillars \{.*"version":2\}/u);
    await untilRan(/^colonnade\.key\.retired\.v1 \/keys\/pillars \{.*"version":1\}/u);
  });

  test('a key that is rotated by age', async () => {
    await untilRan(/^colonnade\.key\.rotated\.v1 \/keys\/identity /u);
  });

  test('a webhook of the audit that takes nothing, until its backlog is near the limit', async () => {
    await webhook.stop();
    for (let i = 0; i < 20; i += 1)
      await world.api.call('POST', '/collections', fromPlain({ id: `c${i}`, name: `c${i}` }));
    await untilRan(/^colonnade\.audit\.alert\.v1 \/audit\/webhook \{"alert":"backend_failing"/u);
    await untilRan(/^colonnade\.audit\.alert\.v1 \/audit\/webhook \{"alert":"backlog".*"percent":\d+/u);
    const alerts = (await ran()).filter((line) => line.includes('"alert":"backlog"'));
    assert.equal(alerts.length, 1);
  });
});
