import path from 'node:path';
import { findNatsServer, findRedisServer, type Report } from '@colonnade/embedded/servers';
import { buildKube } from '../support/kube/find-kube.ts';

const finders = {
  COLONNADE_NATS_SERVER: findNatsServer,
  COLONNADE_REDIS_SERVER: findRedisServer,
};

/**
 * Finds or installs the servers once, before any test, so that no test waits for it, and tells the tests where they
 * are. A server that cannot be had is reported; its tests skip themselves.
 */
export async function prepareServers(report: Report): Promise<void> {
  for (const [variable, find] of Object.entries(finders)) {
    try {
      process.env[variable] = (await find({ report })).path;
    } catch (error) {
      report((error as Error).message);
    }
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
