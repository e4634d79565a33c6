import { randomUUID } from 'node:crypto';
import { auditSubject, startCall } from '@colonnade/contracts';
import { startApp } from '../../../packages/audit/test/support.ts';
import { startRealBus } from '../../support/real-bus.ts';
import type { Figure } from '../figure.ts';
import { drive, interleave } from '../measure.ts';

/** `RequestReceived` and `ResponseComplete`. */
const STAGES = 2;
const RECORD_BYTES = 700;

/** What the middleware costs a request that waits for its records. */
export const auditHttp: Figure = {
  name: 'audit-http',
  about: 'what a request waits for its audit records in blocking-strict, beside bare publishes',
  async measure({ repeats, trialMs }) {
    await using bus = await startRealBus({ maxAuditBytes: 2 ** 30, maxFileBytes: 2 ** 32 });
    const publisher = await bus.as('pillar-api');
    const start = (mode: 'batch' | 'blocking-strict') =>
      startApp({
        ...{ bus: publisher, mode },
        addRoutes: (app) => app.get('/thing', async () => ({ ok: true })),
      });
    await using strict = await start('blocking-strict');
    await using batch = await start('batch');
    const ask = (url: string) => async () => {
      const response = await fetch(`${url}/thing`);
      if (!response.ok) throw new Error(`answered ${response.status}`);
      await response.arrayBuffer();
    };
    const payload = Buffer.alloc(RECORD_BYTES, 'x');
    const publish = () =>
      publisher.publishDurable(
        { subject: auditSubject('pillar-api'), msgId: randomUUID(), payload },
        startCall(5000),
      );
    const load = { concurrency: 1, ms: trialMs };
    const found = await interleave(repeats, {
      strict: () => drive(load, ask(strict.url)),
      batch: () => drive(load, ask(batch.url)),
      bare: () => drive(load, publish),
    });
    const minus = (key: 'min' | 'median' | 'max') => found.strict.p50Ms[key] - found.batch.p50Ms.median;
    const ours = { min: minus('min'), median: minus('median'), max: minus('max'), runs: repeats };
    const times = (key: 'min' | 'median' | 'max') => STAGES * found.bare.p50Ms[key];
    const floor = { min: times('min'), median: times('median'), max: times('max'), runs: repeats };
    return [
      {
        ...{
          what: 'audit middleware, blocking-strict: a request waits longer by',
          unit: 'ms',
          better: 'lower',
        },
        ...{ ours, floor, floorIs: 'two bare publishes, one for each stage' },
        note: `p50 of the request ${found.strict.p50Ms.median.toFixed(2)} ms; in batch mode ${found.batch.p50Ms.median.toFixed(2)} ms`,
      },
    ];
  },
};
