import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { plain, sendPlain, startWorld } from '../../services/pillar-api/test/support.ts';

const run = promisify(execFile);

test('the example of docs/identities.md does what its comments say', async () => {
  await using world = await startWorld();
  const text = await readFile(new URL('../../docs/identities.md', import.meta.url), 'utf8');
  const script = Array.from(text.matchAll(/^```sh\n(.*?)^```$/gmsu), ([, block]) => block ?? '').join('\n');
  assert.ok(script.includes('/identity/enrol'));
  await sendPlain(world.admin, 'POST', '/masters', { id: 'salt-east' });
  const fresh = { 'if-none-match': '*' };
  await sendPlain(world.admin, 'PUT', '/masters/salt-east/minions/web-1', { collections: [] }, fresh);
  const { token } = await world.tokenOf(['editor', 'secret-reader'], 'ann');
  const env = {
    ...{
      PATH: `${path.dirname(process.execPath)}:${process.env.PATH}`,
      TOKEN: token,
      ADMIN: world.adminToken,
    },
    API: world.api.url.replace(/\/$/u, ''),
  };
  const { stdout } = await run('bash', ['-euc', script], { cwd: world.dir, env });
  // Line by line what stands behind "#" in the example.
  const [self = '', ...lines] = stdout.trim().split('\n');
  const jwks = 'http://127.0.0.1:8080/.well-known/jwks.json';
  // Of the key of identities one for each algorithm.
  const service = ['false', 'true', '422', '403', '403', '401'];
  assert.deepEqual(lines, ['correct horse', '401', '401', 'web-1', ...service, jwks, '2']);
  const task = plain(await world.admin.send('GET', `/tasks/${self.replace(/^task:/u, '')}`));
  assert.equal(task.state, 'succeeded');
});
