import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { createHealth } from './health.ts';
import { createMetrics } from './metrics.ts';
import { createOpsServer } from './ops.ts';

test('readiness follows its checks and names the one that fails; liveness does not', async () => {
  const health = createHealth();
  let broken = false;
  health.addCheck('store', () => {
    if (broken) throw new Error('no answer');
  });
  await using ops = await createOpsServer({
    host: '127.0.0.1',
    port: 0,
    health,
    metrics: createMetrics('test'),
    logger: pino({ level: 'silent' }),
    extraRoutes: [
      { path: '/more', answer: () => ({ status: 200, contentType: 'text/plain', body: 'more' }) },
    ],
  });
  const get = async (path: string, method = 'GET') => {
    const response = await fetch(`${ops.url}${path}`, { method });
    return { status: response.status, body: await response.text() };
  };
  assert.equal((await get('/readyz')).status, 200);
  broken = true;
  const down = await get('/readyz');
  assert.equal(down.status, 503);
  assert.deepEqual(JSON.parse(down.body).checks, [{ name: 'store', ok: false, reason: 'no answer' }]);
  assert.equal((await get('/healthz')).status, 200);
  broken = false;
  health.setDraining();
  assert.equal((await get('/readyz')).status, 503);
  assert.match((await get('/metrics')).body, /process_cpu_seconds_total\{service="test"\}/u);
  assert.equal((await get('/more')).body, 'more');
  assert.equal((await get('/absent')).status, 404);
  assert.equal((await get('/healthz', 'POST')).status, 405);
});

test('a check that hangs ends readiness, is begun once, and counts again when it answers', async () => {
  const health = createHealth();
  let begun = 0;
  let answer = Promise.withResolvers<void>();
  health.addCheck('redis', () => {
    begun += 1;
    return answer.promise;
  });
  const [one, other] = await Promise.all([health.ready(), health.ready()]);
  assert.deepEqual([one.ok, other.ok, begun], [false, false, 1]);
  assert.match(one.checks[0]?.reason ?? '', /^no answer within/u);
  answer.resolve();
  assert.equal((await health.ready()).ok, true);
  answer = Promise.withResolvers<void>();
  answer.resolve();
  assert.equal((await health.ready()).ok, true);
});
