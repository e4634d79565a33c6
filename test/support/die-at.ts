import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';

/** Dies at the `step`-th change below a folder, from 1: before it is made (of what is written, half is there then), or after it. */
export type DeathOrder = { step: number; when: 'before' | 'after'; below: string };

const PRELOAD = new URL('../fixtures/die-at.ts', import.meta.url).href;

/** What a service gets so that it can be told where to die. It is started often, so what was compiled is kept beside the order. */
export function mortalEnv(orderFile: string): Record<string, string> {
  return {
    DIE_AT_FILE: orderFile,
    NODE_OPTIONS: `--disable-warning=ExperimentalWarning --import=${PRELOAD}`,
    NODE_COMPILE_CACHE: path.join(path.dirname(orderFile), 'compiled'),
  };
}

/** From now on; a program that is told while it runs begins to count with its next change. */
export async function orderDeath(orderFile: string, order: DeathOrder): Promise<void> {
  await writeFile(`${orderFile}.next`, JSON.stringify(order));
  await rename(`${orderFile}.next`, orderFile);
}

export async function callOffDeath(orderFile: string): Promise<void> {
  await rm(orderFile, { force: true });
}

/**
 * Runs a program that gives itself the order when it begins what is under test, and kills itself there.
 * @returns whether it came to its end
 * @throws Error with what it said when it failed in another way
 */
export async function runMortal(
  program: string,
  orderFile: string,
  args: readonly string[],
): Promise<boolean> {
  await callOffDeath(orderFile);
  const env = { ...process.env, ...mortalEnv(orderFile) };
  const child: ChildProcess = spawn(process.execPath, [program, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = Promise.all(
    [child.stdout, child.stderr].map((stream) => text(stream as NodeJS.ReadableStream)),
  );
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  if (signal === 'SIGKILL') return false;
  if (code === 0) return true;
  throw new Error(`${program} ended with ${signal ?? code}: ${(await said).join('\n')}`);
}

/**
 * Has an act killed before its first change, before its second, and so on until it comes to its end, and once more after its last: what is
 * there after any other change is what is there before the next.
 * @param dieAt one try. @returns whether the act came to its end
 * @returns how many changes it makes
 */
export async function killAtEachStep(
  dieAt: (step: number, when: DeathOrder['when']) => Promise<boolean>,
  most = 60,
): Promise<number> {
  let step = 1;
  while (!(await dieAt(step, 'before'))) {
    step += 1;
    if (step > most) throw new Error(`it makes more than ${most} changes`);
  }
  await dieAt(step - 1, 'after');
  return step - 1;
}
