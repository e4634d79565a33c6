import { findNatsServer, findRedisServer, type Report } from '@colonnade/embedded/servers';

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
