import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { toPlain, type Value } from '@colonnade/value';
import { type Behaviour, startWebhook, writeKubeconfig } from '../../../test/support/fake-webhook.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import {
  eventOf,
  type PreparedSink,
  prepareSink,
  publish,
  publishList,
  publishMany,
  readIds,
  readLines,
} from './support.ts';

/** Fast, so that a test need not wait as an operator would. */
const FAST = {
  AUDIT_WEBHOOK_INITIAL_BACKOFF_MS: '20',
  AUDIT_WEBHOOK_BATCH_MAX_WAIT_MS: '100',
  AUDIT_WEBHOOK_BATCH_THROTTLE_QPS: '1000',
  AUDIT_WEBHOOK_BATCH_MAX_SIZE: '50',
};

describe('the webhook', () => {
  let sink: PreparedSink;
  before(async () => {
    sink = await prepareSink({ auditWebhook: true });
  });
  after(() => sink[Symbol.asyncDispose]());

  const run = async (webhook: { url: string }, changes: Record<string, string> = {}) => {
    const config = await writeKubeconfig(sink.dir, { server: webhook.url }, { token: 's3cret' });
    return sink.start({ ...FAST, AUDIT_WEBHOOK_CONFIG_FILE: config, ...changes });
  };

  test('gets every record, in the order of the stream, in lists of the size asked for', async () => {
    await using webhook = await startWebhook((_ids, _response, request) => {
      assert.equal(request.headers.authorization, 'Bearer s3cret');
    });
    const wanted = await publishMany(sink.publisher, 'order', 220);
    await using _running = await run(webhook);
    await waitFor('all', () => webhook.ids().length >= wanted.length);
    assert.deepEqual(new Set(webhook.ids()), new Set(wanted));
    assert.equal(webhook.ids().length, wanted.length);
    assert.ok(webhook.lists.every((list) => list.length <= 50));
    await waitFor('the file too', async () => (await readIds(sink.logPath)).length >= wanted.length);
    assert.deepEqual(webhook.ids(), (await readIds(sink.logPath)).slice(-wanted.length));
  });

  const failures: Record<string, (n: number) => Behaviour> = {
    'that answers 500': () => (_ids, response) => void response.writeHead(500).end(),
    'that answers 429': () => (_ids, response) => void response.writeHead(429, { 'retry-after': '0' }).end(),
    'that answers 404': () => (_ids, response) => void response.writeHead(404).end(),
    'that redirects': () => (_ids, response) => void response.writeHead(302, { location: '/' }).end(),
    'that sends half an answer': () => (_ids, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{"half"');
      setImmediate(() => response.destroy());
    },
    'that is slow': () => async (_ids, response) => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      response.writeHead(503).end();
    },
    'that hangs up': () => (_ids, response) => void response.destroy(),
  };
  for (const [name, behave] of Object.entries(failures)) {
    test(`${name} gets every record when it is well again`, async () => {
      let left = 4;
      await using webhook = await startWebhook((ids, response, request) => {
        left -= 1;
        if (left >= 0) return behave(left)(ids, response, request);
      });
      await using _running = await run(webhook);
      const wanted = await publishMany(sink.publisher, name, 120);
      await waitFor('all', () => new Set(webhook.ids()).size >= wanted.length);
      assert.deepEqual(new Set(webhook.ids()), new Set(wanted));
      assert.ok(left < 0);
    });
  }

  test('that sends back much more than it got has got it', async () => {
    await using webhook = await startWebhook((_ids, response) => {
      response.writeHead(200).end(Buffer.alloc(8 * 1024 * 1024, ' '));
    });
    await using _running = await run(webhook);
    const wanted = await publishMany(sink.publisher, 'echo', 60);
    await waitFor('all', () => webhook.lists.flat().length >= wanted.length);
    await publishMany(sink.publisher, 'after-echo', 1);
    await waitFor('the next', () => webhook.lists.flat().includes('after-echo-0'));
    assert.equal(webhook.lists.flat().length, wanted.length + 1, 'nothing came twice');
  });

  test('that holds a request does not hold up the end of the sink', async () => {
    let asked = 0;
    await using webhook = await startWebhook(() => {
      asked += 1;
      return new Promise(() => {});
    });
    const running = await run(webhook);
    await publishMany(sink.publisher, 'held', 10);
    await waitFor('a request', () => asked > 0);
    const startMs = performance.now();
    await running[Symbol.asyncDispose]();
    const tookMs = performance.now() - startMs;
    assert.ok(tookMs > 1000 && tookMs < 9000, `${tookMs} ms`);
    // It gave back what it held: the next one has it at once, and not after the time that a dead one is given.
    await using well = await startWebhook();
    await using _next = await run(well);
    await waitFor('all', () => well.ids().filter((id) => id.startsWith('held-')).length === 10);
  });

  test('that is down keeps nothing from the file, and gets every record when it is back', async () => {
    await using webhook = await startWebhook();
    await webhook.stop();
    await using running = await run(webhook);
    const wanted = await publishMany(sink.publisher, 'down', 300);
    await waitFor(
      'the file',
      async () => (await readIds(sink.logPath)).filter((id) => id.startsWith('down')).length >= 300,
    );
    assert.equal((await fetch(`${running.url}/readyz`)).status, 200);
    await webhook.start();
    await waitFor('all', () => new Set(webhook.ids()).size >= wanted.length);
    assert.deepEqual(new Set(webhook.ids()), new Set(wanted));
  });

  test('that refuses some records gets the others; those become dead letters with the reason', async () => {
    const bad = new Set(['some-7', 'some-42', 'some-99']);
    await using webhook = await startWebhook((ids, response) => {
      if (ids.some((id) => bad.has(id))) response.writeHead(400).end();
    });
    await using _running = await run(webhook);
    const wanted = await publishMany(sink.publisher, 'some', 100);
    await waitFor('the others', () => webhook.ids().length >= wanted.length - bad.size);
    assert.deepEqual(new Set(webhook.ids()), new Set(wanted.filter((id) => !bad.has(id))));
    const letters = await waitFor('the letters', async () => {
      const all = await sink.deadLetters();
      return all.filter((l) => l.reason === 'refused_by_webhook').length >= 3 ? all : undefined;
    });
    assert.deepEqual(
      new Set(letters.map((l) => JSON.parse(Buffer.from(l.payload_b64, 'base64').toString()).auditID)),
      bad,
    );
    assert.ok(letters.every((l) => l.detail === 'HTTP 400'));
  });

  test('records that came in one message are sent within the size asked for; one that is refused costs no other', async () => {
    await using webhook = await startWebhook((ids, response) => {
      if (ids.includes('many-77')) response.writeHead(422).end();
    });
    const before = (await sink.deadLetters()).length;
    await using _running = await run(webhook);
    const ids = Array.from({ length: 120 }, (_, i) => `many-${i}`);
    await publishList(
      sink.publisher,
      ids.map((id) => eventOf(id)),
    );
    const others = ids.filter((id) => id !== 'many-77');
    await waitFor('the others', () => webhook.ids().length >= others.length);
    assert.deepEqual(webhook.ids(), others);
    assert.ok(webhook.lists.every((list) => list.length <= 50));
    const [letter] = await waitFor('the letter', async () => {
      const letters = (await sink.deadLetters()).slice(before);
      return letters.length > 0 ? letters : undefined;
    });
    assert.equal(JSON.parse(Buffer.from(letter?.payload_b64 ?? '', 'base64').toString()).auditID, 'many-77');
  });

  test('each backend takes what its policy lets through, as much as it says, and never less than the floor', async () => {
    await using webhook = await startWebhook();
    const policyFile = async (name: string, rules: string) => {
      const file = path.join(sink.dir, name);
      await writeFile(file, `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":${rules}}`);
      return file;
    };
    await using _running = await run(webhook, {
      AUDIT_LOG_POLICY_FILE: await policyFile(
        'file-policy.json',
        '[{"level":"None","verbs":["watch"]},{"level":"RequestResponse"}]',
      ),
      AUDIT_WEBHOOK_POLICY_FILE: await policyFile(
        'webhook-policy.json',
        '[{"level":"None","verbs":["get"]},{"level":"Metadata","verbs":["create"]},{"level":"RequestResponse"}]',
      ),
    });
    const body = { requestObject: { kept: 'in the file' }, level: 'Request' } as const;
    await publish(sink.publisher, eventOf('policy-1', { verb: 'watch', ...body }));
    await publish(sink.publisher, eventOf('policy-2', { verb: 'get' }));
    await publish(sink.publisher, eventOf('policy-3', { verb: 'create', ...body }));
    await publish(
      sink.publisher,
      eventOf('policy-4', { verb: 'get', annotations: { 'colonnade/floor': 'true' }, ...body }),
    );
    await waitFor('both', async () => {
      return webhook.ids().includes('policy-4') && (await readIds(sink.logPath)).includes('policy-4');
    });
    assert.deepEqual(webhook.ids(), ['policy-1', 'policy-3', 'policy-4']);
    const bodies = (webhook.taken as { level: string; requestObject?: object }[]).map((event) => [
      event.level,
      event.requestObject && toPlain(event.requestObject as Value),
    ]);
    const kept = { kept: 'in the file' };
    assert.deepEqual(bodies, [
      ['Request', kept],
      ['Metadata', undefined],
      ['Metadata', undefined],
    ]);
    const lines = (await readLines(sink.logPath)).filter((line) => line.includes('"policy-'));
    const ids = lines.map((line) => JSON.parse(line).auditID);
    assert.deepEqual(ids, ['policy-2', 'policy-3', 'policy-4']);
    assert.ok(lines[1]?.includes('in the file'));
  });

  test('a policy that is none keeps the sink from starting, and says where it is wrong', async () => {
    const file = path.join(sink.dir, 'bad-policy.json');
    await writeFile(file, '{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Most"}]}');
    await assert.rejects(sink.start({ AUDIT_WEBHOOK_POLICY_FILE: file, AUDIT_LOG_POLICY_FILE: file }), {
      code: 'misconfigured',
      message: /rules\[0\]\.level/u,
    });
  });

  test('a body over the limit is cut as Kubernetes does it', async () => {
    await using webhook = await startWebhook();
    await using _running = await run(webhook, {
      AUDIT_WEBHOOK_TRUNCATE_ENABLED: 'true',
      AUDIT_WEBHOOK_TRUNCATE_MAX_EVENT_SIZE: '4096',
    });
    const big = 'x'.repeat(5000);
    await publish(sink.publisher, eventOf('fits', { level: 'Request', requestObject: { a: 1n, b: 1 } }));
    await publish(sink.publisher, eventOf('cut', { level: 'Request', requestObject: { big } }));
    await publish(sink.publisher, eventOf('never', { userAgent: big }));
    await publish(sink.publisher, eventOf('level', { requestObject: { big } }));
    await publish(sink.publisher, eventOf('last'));
    await waitFor('the last', () => webhook.ids().includes('last'));
    assert.deepEqual(webhook.ids(), ['fits', 'cut', 'last']);
    const [fits, cut] = webhook.taken as { requestObject?: unknown; annotations?: Record<string, string> }[];
    assert.deepEqual({ ...(fits?.requestObject as object) }, { a: 1n, b: 1 });
    assert.equal(cut?.requestObject, undefined);
    assert.deepEqual({ ...cut?.annotations }, { 'audit.k8s.io/truncated': 'true' });
    const letters = (await sink.deadLetters()).filter((l) => l.reason === 'too_large');
    assert.equal(letters.length, 2);
  });
});
