import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { COMMANDS } from '../src/index.ts';

/** By which command a route is asked from a terminal; each command is run in a terminal and in a pipe by the tests of its kind. */
const COMMAND_OF: Readonly<Record<string, string>> = {
  'POST /pillars': 'pillar create',
  'GET /pillars/{pid}': 'pillar get',
  'PUT /pillars/{pid}': 'pillar set',
  'DELETE /pillars/{pid}': 'pillar delete',
  'POST /pillars/{pid}/seal': 'pillar seal',
  'POST /pillars/{pid}/unseal': 'pillar unseal',
  'POST /pillars/{pid}/replace': 'pillar replace',
  'POST /pillars/{pid}/rename': 'pillar rename',
  'POST /pillars/{pid}/move': 'pillar move',
  'GET /pillars/{pid}/versions': 'history',
  'GET /pillars/{pid}/versions/{tick}': 'history',
  'GET /pillars/{pid}/diff': 'diff',
  'POST /pillars/{pid}/restore': 'pillar restore',
  'POST /scopes/restore': 'scope restore',
  'POST /pillars/{pid}/purge-history': 'pillar purge-history',
  'POST /pillars/{pid}/purge': 'pillar purge',
  'GET /history/retention': 'retention show',
  'POST /history/retention': 'retention run',
  'POST /pillars/list': 'pillar list',
  'GET /pillars/for-target': 'pillar for-target',
  'GET /pillars/{pid}/reach': 'pillar reach',
  'POST /pillars/search': 'pillar search',
  'POST /import': 'import',
  'GET /export': 'export',
  'POST /pillars/{pid}/reveal': 'pillar reveal',
  'POST /collections': 'collection create',
  'GET /collections': 'collection list',
  'GET /collections/{id}': 'collection get',
  'PATCH /collections/{id}': 'collection set',
  'DELETE /collections/{id}': 'collection delete',
  'PUT /collections/{id}/rule': 'collection rule set',
  'DELETE /collections/{id}/rule': 'collection rule delete',
  'POST /masters': 'master create',
  'GET /masters': 'master list',
  'GET /masters/{id}': 'master get',
  'PUT /masters/{id}': 'master set',
  'DELETE /masters/{id}': 'master delete',
  'POST /masters/{id}/tokens': 'master token create',
  'DELETE /masters/{id}/tokens/{jti}': 'master token delete',
  'POST /masters/{id}/enrolments': 'master enrol',
  'POST /tasks/templates': 'template create',
  'GET /tasks/templates': 'template list',
  'GET /tasks/templates/{tpl_id}': 'template get',
  'PUT /tasks/templates/{tpl_id}': 'template set',
  'DELETE /tasks/templates/{tpl_id}': 'template delete',
  'GET /tasks/template/{tpl_id}/with-defaults': 'template get',
  'GET /tasks/template/{tpl_id}/defaults': 'template defaults',
  'PUT /tasks/template/{tpl_id}/defaults': 'template defaults',
  'POST /tasks': 'task create',
  'GET /tasks': 'task list',
  'GET /tasks/{task_id}': 'task get',
  'DELETE /tasks/{task_id}': 'task delete',
  'POST /tasks/{task_id}/state': 'task state',
  'POST /tasks/{task_id}/token': 'task token',
  'PUT /masters/{master}/minions/{id}': 'minion set',
  'GET /masters/{master}/minions/{id}': 'minion get',
  'DELETE /masters/{master}/minions/{id}': 'minion delete',
  'GET /masters/{master}/minions': 'minion list',
  'POST /masters/{master}/minions/{id}/move': 'minion move',
  'POST /inventories': 'inventory send',
  'GET /inventories': 'inventory list',
  'GET /masters/{master}/minions/{id}/inventory': 'inventory get',
  'DELETE /masters/{master}/minions/{id}/inventory': 'inventory delete',
  'POST /tokens': 'token create',
  'GET /tokens': 'token list',
  'DELETE /tokens/{id}': 'token delete',
  'POST /revocations': 'revocation create',
  'GET /revocations': 'revocation list',
  'DELETE /revocations/{id}': 'revocation delete',
  'GET /keys': 'key list',
  'POST /keys/{name}/rotate': 'key rotate',
  'GET /keys/{name}/rewrap': 'key rewrap',
  'POST /keys/{name}/rewrap': 'key rewrap',
  'POST /keys/{name}/min-version': 'key min-version',
  'POST /keys/{name}/destroy': 'key destroy',
  'POST /keys/{name}/undestroy': 'key undestroy',
  'GET /changes': 'changes',
  'GET /whoami': 'whoami',
  'GET /limits': 'limits',
  'GET /explain': 'explain',
  'POST /explain/preview': 'explain',
  'POST /generations': 'generation run',
  'GET /generations': 'generation list',
  'GET /generations/{id}': 'generation get',
  'GET /masters/{master}/minions/{id}/policies/diff': 'minion diff',
  'GET /hooks': 'hooks list',
  'GET /hooks/runs': 'hooks history',
  'POST /hooks/{event}/run': 'hooks run',
};

const WORKLOAD = 'asked by what runs, with the identity of a task or of a master: never by a person';

/** Routes that no command asks, and why. */
const WITHOUT: Readonly<Record<string, string>> = {
  'GET /identity': WORKLOAD,
  'POST /identity/renew': WORKLOAD,
  'POST /identity/enrol': 'asked by a host of a master, with the token of "master enrol"',
  'GET /identity/pillars': WORKLOAD,
  'GET /identity/minions': WORKLOAD,
  'GET /identity/minions/{id}/pillars': WORKLOAD,
};

test('every route of the API is asked by a command, or is no operator’s', () => {
  const url = new URL('../../../services/pillar-api/openapi.generated.json', import.meta.url);
  const { paths } = JSON.parse(readFileSync(url, 'utf8')) as { paths: Record<string, object> };
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  assert.deepEqual([...Object.keys(COMMAND_OF), ...Object.keys(WITHOUT)].sort(), routes.sort());
  const commands = new Set(COMMANDS.map(({ path }) => path.join(' ')));
  for (const [route, command] of Object.entries(COMMAND_OF)) assert.ok(commands.has(command), route);
});
