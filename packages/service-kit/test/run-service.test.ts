import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const kit = fileURLToPath(new URL('../src/index.ts', import.meta.url));
const contracts = import.meta.resolve('@colonnade/contracts');

function run(start: string): { child: ChildProcess; output: () => string } {
  const program = `
    import { runService } from ${JSON.stringify(kit)};
    import { ColonnadeError } from ${JSON.stringify(contracts)};
    await runService({ name: 'test', start: ${start} });`;
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk) => {
      text += String(chunk);
    });
  return { child, output: () => text };
}

async function exitOf(child: ChildProcess): Promise<number | null> {
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  assert.equal(signal, null);
  return code;
}

async function untilReady(one: { child: ChildProcess; output: () => string }): Promise<void> {
  while (!one.output().includes('"msg":"ready"'))
    await once(one.child.stdout as NodeJS.ReadableStream, 'data');
}

describe('the life of a service', () => {
  test('ready, SIGTERM, disposed, exit 0', async () => {
    const one = run(
      `async () => ({ announce: { url: 'http://x' }, async [Symbol.asyncDispose]() { console.log('DISPOSED'); } })`,
    );
    const exit = exitOf(one.child);
    await untilReady(one);
    one.child.kill('SIGTERM');
    assert.equal(await exit, 0);
    assert.match(one.output(), /"url":"http:\/\/x"/u);
    assert.match(one.output(), /DISPOSED/u);
  });

  test('a fault of the configuration exits 78 and says it plainly', async () => {
    const one = run(`async () => { throw new ColonnadeError('misconfigured', 'PORT: must be a port'); }`);
    assert.equal(await exitOf(one.child), 78);
    assert.match(one.output(), /^PORT: must be a port$/mu);
  });

  test('a failed start and an unhandled rejection exit 1', async () => {
    assert.equal(await exitOf(run(`async () => { throw new Error('no'); }`).child), 1);
    const later = run(
      `async () => { setTimeout(() => void Promise.reject(new Error('later')), 10); return { async [Symbol.asyncDispose]() {} }; }`,
    );
    assert.equal(await exitOf(later.child), 1);
    assert.match(later.output(), /unhandled rejection/u);
  });
});
