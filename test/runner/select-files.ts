import { glob, stat } from 'node:fs/promises';
import path from 'node:path';

const everything = ['test', 'services', 'infra', 'packages', 'scripts'];

/**
 * The test files to run, relative to the checkout, those across services first: they take longest.
 * @param asked files, folders, or parts of a path; all tests when there are none
 * @throws Error when something asked for is no test
 */
export async function selectFiles(root: string, asked: readonly string[]): Promise<string[]> {
  const all: string[] = [];
  for (const folder of everything) {
    const found = await Array.fromAsync(
      glob(`${folder}/**/*.test.ts`, { cwd: root, exclude: (name) => name === 'node_modules' }),
    );
    all.push(...found.sort());
  }
  if (asked.length === 0) return all;
  const chosen = new Set<string>();
  for (const name of asked) {
    const matching = await match(root, all, name);
    if (matching.length === 0) throw new Error(`no test file matches "${name}"`);
    for (const file of matching) chosen.add(file);
  }
  return all.filter((file) => chosen.has(file));
}

async function match(root: string, all: readonly string[], name: string): Promise<string[]> {
  const relative = path.relative(root, path.resolve(root, name));
  const info = await stat(path.join(root, relative)).catch(() => undefined);
  if (info?.isFile()) return all.filter((file) => file === relative);
  if (info?.isDirectory()) return all.filter((file) => file.startsWith(relative ? `${relative}/` : ''));
  return all.filter((file) => file.includes(name) || path.matchesGlob(file, name));
}
