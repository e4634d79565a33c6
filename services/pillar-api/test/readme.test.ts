import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import {
  zCollectionCreate,
  zCollectionPatch,
  zDefaultsPut,
  zDiffQuery,
  zEventPublish,
  zExplainPreview,
  zExplainQuery,
  zExportQuery,
  zForTargetQuery,
  zGenerationCreate,
  zHookRunsQuery,
  zHookTry,
  zImportQuery,
  zInventory,
  zMasterCreate,
  zMasterTokenCreate,
  zMasterUpdate,
  zMinionMove,
  zMinionPut,
  zPillarCreate,
  zPillarList,
  zPillarMove,
  zPillarRename,
  zPillarReplace,
  zPillarRestore,
  zPillarSearch,
  zPillarUpdate,
  zRevocationCreate,
  zScopeRestore,
  zServiceCreate,
  zServiceUpdate,
  zTaskCreate,
  zTaskQuery,
  zTaskStateChange,
  zTemplateCreate,
  zTemplateUpdate,
  zTokenCreate,
} from '@colonnade/contracts';
import { settingsTable } from '@colonnade/service-kit';
import { PERMISSIONS, ROLE_PERMISSIONS } from '../src/auth/permissions.ts';
import { settings } from '../src/config.ts';
import { allRoutes } from '../src/routes/index.ts';

const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');

/** The lines of a table, by the first words of its section. */
function tableOf(section: string): string[] {
  const text = readme.split(`## ${section}\n`)[1]?.split('\n## ')[0] ?? '';
  return text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(2);
}

test('the table of settings is that of the code', () => {
  assert.deepEqual(tableOf('Settings'), [...settingsTable(settings)]);
});

test('the table of routes names every route with its permission', () => {
  const routes = allRoutes({} as never);
  const expected = routes.map(
    ({ method, url, permission }) => `| \`${method} ${url}\` | \`${permission}\` |`,
  );
  const told = tableOf('Routes').map((line) => line.split(' | ').slice(0, 2).join(' | ').concat(' |'));
  assert.deepEqual(told.sort(), [...expected, '| `GET /metrics` | `metrics:read` |'].sort());
});

test('the table of roles names what each may do', () => {
  for (const [role, permissions] of Object.entries(ROLE_PERMISSIONS)) {
    const line = tableOf('Roles').find((row) => row.startsWith(`| ${role} |`)) ?? '';
    if (permissions === PERMISSIONS) assert.match(line, /\| all,/u);
    else
      assert.deepEqual(
        line.match(/`[^`]+`/gu),
        permissions.map((p) => `\`${p}\``),
      );
  }
});

test('the table of fields names every field of the bodies', () => {
  const bodies = {
    'POST /pillars': zPillarCreate,
    'PUT /pillars/:pid': zPillarUpdate,
    'POST /pillars/list': zPillarList,
    'POST /pillars/search': zPillarSearch,
    'POST /import': zImportQuery,
    'GET /export': zExportQuery,
    'POST /collections': zCollectionCreate,
    'PATCH /collections/:id': zCollectionPatch,
    'POST /masters': zMasterCreate,
    'PUT /masters/:id': zMasterUpdate,
    'POST /services': zServiceCreate,
    'PUT /services/:id': zServiceUpdate,
    'POST /events': zEventPublish,
    'POST /masters/:id/tokens': zMasterTokenCreate.unwrap(),
    'PUT /masters/:master/minions/:id': zMinionPut,
    'POST /pillars/:pid/replace': zPillarReplace,
    'POST /pillars/:pid/rename': zPillarRename,
    'POST /pillars/:pid/move': zPillarMove,
    'POST /pillars/:pid/restore': zPillarRestore,
    'GET /pillars/:pid/diff': zDiffQuery,
    'POST /scopes/restore': zScopeRestore,
    'POST /masters/:master/minions/:id/move': zMinionMove,
    'POST /generations': zGenerationCreate.unwrap(),
    'GET /hooks/runs': zHookRunsQuery,
    'POST /hooks/:event/run': zHookTry,
    'POST /inventories': zInventory,
    'POST /tokens': zTokenCreate,
    'POST /revocations': zRevocationCreate,
    'GET /pillars/for-target': zForTargetQuery,
    'POST /tasks/templates': zTemplateCreate,
    'PUT /tasks/templates/:tpl_id': zTemplateUpdate,
    'PUT /tasks/template/:tpl_id/defaults': zDefaultsPut,
    'POST /tasks': zTaskCreate,
    'GET /tasks': zTaskQuery,
    'POST /tasks/:task_id/state': zTaskStateChange,
    'GET /explain': zExplainQuery,
    'POST /explain/preview': zExplainPreview,
  };
  const told = tableOf('By hand').map((line) =>
    line.split(' | ').slice(0, 2).join(' ').concat(requiredMark(line)),
  );
  const expected = Object.entries(bodies).flatMap(([request, { shape }]) =>
    Object.entries(shape).map(
      ([field, kind]) => `| \`${request}\` \`${field}\`${isOptional(kind) ? '' : ' required'}`,
    ),
  );
  assert.deepEqual(told.sort(), expected.sort());
});

function requiredMark(line: string): string {
  return line.split(' | ')[3]?.startsWith('required') ? ' required' : '';
}

function isOptional(kind: { safeParse(x: unknown): { success: boolean } }): boolean {
  return kind.safeParse(undefined).success;
}
