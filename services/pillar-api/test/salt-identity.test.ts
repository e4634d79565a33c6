import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { createApiClient } from '@colonnade/embedded';
import { findPython } from '../../../test/support/python.ts';
import { plain, startWorld } from './support.ts';

const run = promisify(execFile);
const ENGINES = path.join(import.meta.dirname, '../../../infra/salt/colonnade_salt/engines');

/** One look of the engine, as if so many seconds had passed. */
const KEEP = `
import json, sys, time
sys.path.insert(0, sys.argv[1])
import colonnade_identity as engine
options, late = json.loads(sys.argv[2]), float(sys.argv[3])
try:
    def clock():
        now = engine.read_clock()
        return now._replace(wall=now.wall + late, boot=now.boot + late)
    print(engine.keep(options, clock))
except engine.IdentityError as error:
    print("refused:", error)
`;

test('the engine enrols with a real pillar-api, keeps a file of its own, renews, and is told when it was taken back', async () => {
  await using world = await startWorld();
  const { command } = await findPython();
  await world.admin.call('POST', '/masters', { id: 'salt-east' });
  const enrolment = plain(await world.admin.call('POST', '/masters/salt-east/enrolments'));
  const identityFile = path.join(world.dir, 'salt-identity');
  const onceFile = path.join(world.dir, 'salt-once');
  await writeFile(onceFile, `${enrolment.token}\n`, { mode: 0o600 });
  const options = { identity_file: identityFile, enrol_token_file: onceFile, api_url: world.api.url };
  const keep = async (lateS = 0) =>
    (await run(command, ['-c', KEEP, ENGINES, JSON.stringify(options), String(lateS)])).stdout.trim();
  const whoIs = async () => {
    const { token } = JSON.parse(await readFile(identityFile, 'utf8')) as { token: string };
    return plain(await createApiClient(world.api.url, token).send('GET', '/identity'));
  };

  assert.equal(await keep(), 'enrolled');
  assert.equal((await stat(identityFile)).mode & 0o777, 0o600);
  const first = await whoIs();
  assert.deepEqual([first.sub, first.sid], ['master:salt-east', enrolment.id]);
  assert.equal(await keep(), 'fresh');
  assert.equal(await keep(500), 'renewed');
  const second = await whoIs();
  assert.equal(second.sub, 'master:salt-east');
  assert.notEqual(second.jti, first.jti);

  // A one-time token that somebody copied is worth nothing any more.
  await writeFile(onceFile, `${enrolment.token}\n`, { mode: 0o600 });
  assert.match(await keep(100_000), /refused: .*401 \(unauthorized\)/u);
  await world.admin.call('DELETE', `/masters/salt-east/tokens/${enrolment.id}`);
  assert.match(await keep(1000), /refused: .*401 \(unauthorized\)/u);
});
