import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { fromPlain } from '@colonnade/value';
import { findPython } from '../support/python.ts';
import type { SaltVersion } from '../support/salt.ts';
import { skipWithout } from '../support/servers.ts';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  type BridgeDescription,
  checkApply,
  checkExplain,
  checkExplainWithout,
  checkForeignScope,
  checkGuard,
  checkLogs,
  checkPart,
  checkShowPillar,
  MINION,
  OTHER_MINION,
  OTHER_SECRET,
  type Part,
  type Scene,
  SECRET,
  startScene,
} from './scenario.ts';

const MASTER = 'm1';

/** A real Salt of one version, on a whole Colonnade. */
export async function describeSalt(version: SaltVersion): Promise<void> {
  const skip = await reasonToSkip();
  describe(`Salt ${version} on Colonnade`, { skip }, () => {
    let stack: TestStack;
    let scene: Scene;
    let bridge: BridgeDescription;
    before(async () => {
      stack = await stackForTests();
      bridge = await fillEstate(stack);
      const api = { url: stack.stack.api.url, token: stack.stack.secrets.adminToken };
      scene = await startScene(version, bridge, api);
    });
    after(async () => {
      await scene?.stop();
      await stack?.[Symbol.asyncDispose]();
    });
    test('show_pillar gives files and scopes merged', () => checkShowPillar(scene));
    test('a state renders a secret into a file', () => checkApply(scene));
    test('the runner explains where each key came from', () => checkExplain(scene));
    test('a foreign scope gives nothing and is on record', async () => {
      await checkForeignScope(scene, MASTER);
      await waitFor('the refusal in the audit log', () => isOnRecord(stack));
    });
    test('the runner says when the pillar cannot be compiled', () =>
      checkExplainWithout(scene, partOf('kms', stack, scene)));
    for (const name of ['merger', 'kms', 'redis', 'library'] as const) {
      test(`no run without the ${name}`, () => checkPart(scene, partOf(name, stack, scene)));
    }
    test('the guard stops a run whose external pillar was skipped', () => checkGuard(scene));
    test("Salt's logs hold no secret", () =>
      checkLogs(scene, [SECRET, OTHER_SECRET, bridge.password, bridge.token]));
  });
}

export async function reasonToSkip(): Promise<string | false> {
  if (process.getuid?.() !== 0) return "Salt's minion runs as root";
  const python = await findPython().catch((error: Error) => error);
  return python instanceof Error ? python.message : await skipWithout('nats', 'redis');
}

async function fillEstate({ api, stack, addMaster }: TestStack): Promise<BridgeDescription> {
  const credentials = await addMaster(MASTER);
  const write = writeEstate(api);
  await write.collection('web');
  await write.minion(MASTER, MINION, ['web']);
  await write.minion(MASTER, OTHER_MINION, []);
  const minion = (id: string) => ({ tgt_type: 'minion', master: MASTER, minion_id: id });
  await write.pillar({ tgt_type: 'root' }, 'motd', 'of the root');
  await write.pillar({ tgt_type: 'collection', collection_id: 'web' }, 'motd', 'of the collection');
  await write.pillar({ tgt_type: 'root' }, 'nginx', { workers: fromPlain(4), ratio: 1.0 });
  await write.pillar(minion(MINION), 'db_password', SECRET, true);
  await write.pillar(minion(OTHER_MINION), 'db_root', OTHER_SECRET, true);
  return {
    redisHost: stack.redis.host,
    redisPort: stack.redis.port,
    username: credentials.redisUser,
    password: credentials.redisPassword,
    token: credentials.token,
    master: MASTER,
  };
}

function partOf(name: 'merger' | 'kms' | 'redis' | 'library', { stack }: TestStack, scene: Scene): Part {
  const server = { merger: stack.mergers[0], kms: stack.kms, redis: stack.redis, library: undefined }[name];
  const codes = {
    // A merger that was killed is missed when its sign of life runs out.
    merger: /COLONNADE_(NO_MERGER|TIMEOUT)/,
    kms: /COLONNADE_KMS_UNAVAILABLE/,
    redis: /COLONNADE_REDIS_UNAVAILABLE/,
    library: /COLONNADE_MISCONFIGURED/,
  }[name];
  if (server === undefined) {
    return {
      codes,
      takeAway: () => scene.restartMaster({ library: false }),
      bringBack: () => scene.restartMaster({ library: true }),
    };
  }
  return { codes, takeAway: () => server.kill('SIGKILL'), bringBack: () => server.restart() };
}

async function isOnRecord({ stack }: TestStack): Promise<boolean> {
  const lines = (await readFile(stack.auditLog, 'utf8')).split('\n');
  const scope = `minion_id:${OTHER_MINION};master:${MASTER}`;
  return lines.some((line) => line.includes(scope) && line.includes('forbidden'));
}
