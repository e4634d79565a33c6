import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Report } from '@colonnade/embedded/servers';
import { buildGo, skipWithoutGo } from '../support/go.ts';
import { buildKube } from '../support/kube/find-kube.ts';
import { ensureVenv, readRequirements } from '../support/python.ts';

/** Folders of tests, and of the Go program they need. */
const goPrograms = [
  ['test/faults/', 'test/faults/checker'],
  ['test/conformance/audit-policy/', 'test/conformance/audit-policy'],
] as const;

/**
 * Builds in the background what takes minutes on a new machine, while the quick tests run: Go programs to compare with,
 * the Salt versions under test. A test that comes to it earlier waits for the same build; a failure is the test's to
 * report.
 */
export async function prepareSlow(root: string, files: readonly string[], report: Report): Promise<void> {
  await Promise.all([prepareGo(root, files, report), prepareSalt(root, files, report)]);
}

async function prepareGo(root: string, files: readonly string[], report: Report): Promise<void> {
  if (skipWithoutGo() !== false) return;
  for (const [tests, program] of goPrograms) {
    if (!files.some((file) => file.startsWith(tests))) continue;
    await buildGo(path.join(root, program)).catch((error: Error) =>
      report(`${program} could not be built: ${error.message}`),
    );
  }
}

async function prepareSalt(root: string, files: readonly string[], report: Report): Promise<void> {
  const folder = path.join(root, 'test', 'salt');
  if (!files.some((file) => file.startsWith('test/salt/'))) return;
  for (const name of await readdir(folder)) {
    const version = /^requirements-(\d+)\.txt$/u.exec(name)?.[1];
    if (version === undefined) continue;
    await ensureVenv(`salt-${version}`, await readRequirements(path.join(folder, name))).catch(
      (error: Error) => report(`Salt ${version} could not be prepared: ${error.message}`),
    );
  }
}

/** Test files that start a kube-apiserver say so in their name. */
export function needsKube(file: string): boolean {
  return file.endsWith('.kube.test.ts');
}

/** Compiles kube-apiserver where everything is required; elsewhere a person decides to spend the time. Never throws. */
export async function prepareKube(report: Report): Promise<void> {
  try {
    process.env.KUBEBUILDER_ASSETS = path.dirname((await buildKube(report)).apiserver);
  } catch (error) {
    report((error as Error).message);
  }
}
