import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createApiClient } from '@colonnade/api-client';
import { ColonnadeError, encodeTree, zExplanation } from '@colonnade/contracts';
import { canonicalText } from '@colonnade/value';
import { connectBridge } from './bridge-client.ts';
import { writeCliEnv } from './cli-env.ts';
import { demonstrate, renderDemonstration } from './demo.ts';
import { keepRunning } from './keep-running.ts';
import { lockFolder } from './lock-folder.ts';
import { readOptions, type StartOptions, usage } from './options.ts';
import { loadSample } from './sample/load.ts';
import type { RunningServer } from './servers/index.ts';
import { type Stack, startStack } from './stack.ts';

const SHOWN = { master: 'salt-east', minionId: 'shop-1.example' };

/** `npm start`: everything on one host, the sample estate, one merged pillar with its reasons. */
async function main(args: readonly string[]): Promise<void> {
  const options = readOptions(args);
  if (options.help) return void process.stdout.write(usage);
  const began = performance.now();
  const report = (text: string) =>
    process.stderr.write(`[${((performance.now() - began) / 1000).toFixed(1).padStart(5)} s] ${text}\n`);
  await using cleanup = new AsyncDisposableStack();
  const dir = await prepareFolder(options, cleanup);
  const starting = leaveAtOnce();
  const stack = cleanup.use(
    await startStack({
      ...{ dir, report, mergers: options.mergers, httpPort: options.httpPort },
      ...{ auditPolicyFile: options.auditPolicy, auditWebhookFile: options.auditWebhook },
    }),
  );
  await show(stack, options, report).catch((thrown: unknown) => {
    // In an installation of its own an owner may have changed or removed what is shown; that is no reason to stop.
    if (options.once) throw thrown;
    report(`the sample cannot be shown: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  });
  starting[Symbol.dispose]();
  if (options.once) return;
  (options.json ? process.stderr : process.stdout).write(doors(stack, await writeCliEnv(stack)));
  const stopped = new AbortController();
  for (const [name, server] of partsOf(stack)) void keepRunning(name, server, report, stopped.signal);
  await stopSignal();
  report('stopping');
  stopped.abort();
}

async function prepareFolder(options: StartOptions, cleanup: AsyncDisposableStack): Promise<string> {
  if (options.once && options.data === undefined) {
    const dir = await mkdtemp(path.join(tmpdir(), 'colonnade-'));
    process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
    return dir;
  }
  const dir = path.resolve(options.data ?? path.join('.colonnade', 'data'));
  cleanup.use(await lockFolder(dir));
  return dir;
}

async function show(stack: Stack, options: StartOptions, report: (text: string) => void): Promise<void> {
  const api = createApiClient(stack.api.url, stack.secrets.adminToken);
  const masters = await loadSample(api, stack.redis, path.join(stack.dir, 'secrets', 'masters'));
  report(`sample estate loaded: masters ${[...masters.keys()].join(', ')}`);
  const credentials = masters.get(SHOWN.master);
  if (credentials === undefined) throw new ColonnadeError('internal', 'the sample lost its master');
  await using bridge = connectBridge({
    host: stack.redis.host,
    port: stack.redis.port,
    username: credentials.redisUser,
    password: credentials.redisPassword,
    master: credentials.master,
    token: credentials.token,
  });
  const demo = await demonstrate(bridge.ask, api, SHOWN.master, SHOWN.minionId);
  if (!options.json) return void process.stdout.write(`\n${renderDemonstration(demo)}\n\n`);
  const { pillar, explanation } = demo;
  const document = { pillar, explanation: encodeTree(zExplanation, explanation), api: stack.api.url };
  process.stdout.write(`${canonicalText(document)}\n`);
}

function doors(stack: Stack, cliEnv: string): string {
  const rows = [
    ['pillar-api', stack.api.url],
    ['crypto-kms (JWKS)', `${stack.kms.url}/.well-known/jwks.json`],
    ...stack.mergers.map((m, i) => [`pillar-merger ${i + 1} (health)`, `${m.url}/readyz`]),
    ['audit-sink (health)', `${stack.sink.url}/readyz`],
    ['audit log', stack.auditLog],
    ['hook-runner (health)', `${stack.hooks.url}/readyz`],
    ['hooks', stack.hooksDir],
    ['NATS', stack.nats.url],
    ['Redis', stack.redis.url],
    ['data and logs', stack.dir],
    ['admin token', stack.secrets.adminToken],
  ];
  const example = `curl -H "Authorization: Bearer ${stack.secrets.adminToken}" ${stack.api.url}/masters`;
  const terminal = `. ${path.relative('', cliEnv)}; npx . status`;
  return `${rows.map(([name, value]) => `  ${String(name).padEnd(26)} ${value}`).join('\n')}\n\nTry: ${example}\nFrom another terminal, here: ${terminal}\nCtrl-C stops everything.\n`;
}

function partsOf({
  nats,
  redis,
  kms,
  sink,
  hooks,
  api,
  mergers,
}: Stack): readonly (readonly [string, RunningServer])[] {
  const servers = [['nats-server', nats] as const, ['redis-server', redis] as const];
  return [
    ...servers,
    ...[kms, sink, hooks, api, ...mergers].map((service) => [service.name, service] as const),
  ];
}

/** While parts are still being started, a signal ends us at once; they end with us. */
function leaveAtOnce(): Disposable {
  const leave = () => process.exit(130);
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.once(signal, leave);
  return {
    [Symbol.dispose]() {
      for (const signal of signals) process.off(signal, leave);
    },
  };
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
  });
}

await main(process.argv.slice(2)).catch((thrown: unknown) => {
  const wrongOption = thrown instanceof ColonnadeError && thrown.code === 'bad_request';
  process.stderr.write(
    `${thrown instanceof Error ? thrown.message : String(thrown)}\n${wrongOption ? `\n${usage}` : ''}`,
  );
  process.exitCode = wrongOption ? 2 : 1;
});
