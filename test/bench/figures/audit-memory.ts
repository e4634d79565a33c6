import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { startService } from '@colonnade/embedded';
import { eventOf, publish } from '../../../services/audit-sink/test/support.ts';
import { freePort } from '../../support/free-port.ts';
import { startRealBus } from '../../support/real-bus.ts';
import { tempDir } from '../../support/temp.ts';
import type { Figure } from '../figure.ts';
import { spreadOf } from '../measure.ts';
import { residentMiB } from '../parts/memory.ts';

const LARGE = 1_000_000;
const USUAL = 100_000;
const FIRST = 5000;
const AT_ONCE = 256;

/** audit-sink while its webhook is away and records pile up. */
export const auditMemory: Figure = {
  name: 'audit-memory',
  about: 'memory of audit-sink with the webhook down and 100,000 records waiting (--large: 1,000,000)',
  async measure({ large, report }) {
    await using bus = await startRealBus({
      auditWebhook: true,
      maxAuditBytes: 2 ** 31,
      maxFileBytes: 2 ** 33,
    });
    await using dir = await tempDir('memory');
    const webhook = path.join(dir.path, 'webhook.json');
    await writeFile(webhook, kubeconfig(await freePort()), { mode: 0o600 });
    await using sink = await startService({
      ...{ name: 'audit-sink', portVariable: 'OPS_PORT', logFile: path.join(dir.path, 'sink.log') },
      env: {
        ...{ AUDIT_LOG_PATH: path.join(dir.path, 'audit.log'), AUDIT_WEBHOOK_CONFIG_FILE: webhook },
        ...{ NATS_URL: bus.nats.url, NATS_NKEY_SEED: bus.nkeySeedOf('audit-sink'), OPS_PORT: '0' },
        AUDIT_WEBHOOK_MAX_BACKLOG: String(2 * LARGE),
      },
    });
    const publisher = await bus.as('pillar-api');
    const waiting = large ? LARGE : USUAL;
    const peaks: number[] = [];
    const until = async (count: number, published: number) => {
      let left = count - published;
      let peak = 0;
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          while (left-- > 0) {
            await publish(publisher, eventOf(randomUUID()));
            if (left % 1000 === 0) peak = Math.max(peak, await residentMiB(sink.pid));
          }
        }),
      );
      peaks.push(peak);
      report(`${count} waiting, at most ${Math.round(peak)} MiB`);
    };
    await until(FIRST, 0);
    await until(waiting / 2, FIRST);
    await until(waiting, waiting / 2);
    const [, half = 0, whole = 0] = peaks;
    return [
      {
        ...{
          what: `audit-sink, webhook down, ${waiting.toLocaleString('en')} waiting`,
          unit: 'MiB',
          better: 'lower',
        },
        ...{ ours: spreadOf([whole]), floor: spreadOf([half]), floorIs: 'with half as many waiting' },
        goal: { text: 'flat: ≤ 1.2 ×', met: whole <= 1.2 * half },
      },
    ];
  },
};

/** Names a server that is not there. */
function kubeconfig(port: number): string {
  return JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c', users: [{ name: 'u', user: {} }] },
    clusters: [{ name: 'k', cluster: { server: `http://127.0.0.1:${port}/audit` } }],
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
  });
}
