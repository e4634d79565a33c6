import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { describeRequest } from '@colonnade/audit';
import { allRoutes } from '../src/routes/index.ts';

/** What concerns nothing of the estate: policies match the URL. */
const NO_RESOURCE = new Set(['GET /whoami', 'GET /limits']);

const routes = allRoutes({} as never);

/** The table of packages/audit, of the routes there are: request, verb, resource, whether it has a name. */
function tableOf(): string[] {
  return routes.flatMap(({ method, url }) => {
    const params = Object.fromEntries([...url.matchAll(/:(\w+)/gu)].map(([, name]) => [name ?? '', 'x']));
    const { verb, objectRef } = describeRequest({ method, route: url, params, query: {} });
    if (objectRef === undefined) return [];
    const { resource, subresource } = objectRef;
    const what = subresource === undefined ? resource : `${resource}/${subresource}`;
    return [`| \`${method} ${url}\` | ${verb} | \`${what}\` |`];
  });
}

test('every route is a request for a resource, but for those that concern nobody', () => {
  const without = routes.filter(
    ({ method, url }) =>
      describeRequest({ method, route: url, params: {}, query: {} }).objectRef === undefined,
  );
  assert.deepEqual(new Set(without.map(({ method, url }) => `${method} ${url}`)), NO_RESOURCE);
});

test('the table of packages/audit has every one of them, and nothing else', async () => {
  const readme = await readFile(new URL('../../../packages/audit/README.md', import.meta.url), 'utf8');
  const lines = readme.split('\n').filter((line) => /^\| `(?:GET|POST|PUT|PATCH|DELETE) \//u.test(line));
  assert.deepEqual(lines.toSorted(), tableOf().toSorted(), `the table should be:\n${tableOf().join('\n')}`);
});

/** What changes something, or asks with a body, and neither a sealed value nor a credential nor a right is in it. */
const NO_FLOOR = [
  ...['POST /pillars/list', 'POST /pillars/search', 'POST /explain/preview'],
  ...['POST /collections', 'POST /tasks/templates', 'PUT /tasks/templates/:tpl_id'],
  ...['POST /generations', 'POST /hooks/:event/run'],
];

test('whatever changes something has a floor, unless it is said here why it needs none', () => {
  const without = routes.filter(({ method, audit }) => method !== 'GET' && audit.floor !== true);
  assert.deepEqual(without.map(({ method, url }) => `${method} ${url}`).toSorted(), NO_FLOOR.toSorted());
});

test('packages/audit names every route that has a floor, and no other', async () => {
  const readme = await readFile(new URL('../../../packages/audit/README.md', import.meta.url), 'utf8');
  const [, list = ''] = /Over HTTP these are:\n\n(.*?)\n\n/su.exec(readme) ?? [];
  const named = Array.from(list.matchAll(/`([A-Z]+ \/[^`]*)`/gu), ([, request]) => request ?? '');
  const wanted = routes
    .filter(({ audit }) => audit.floor === true)
    .map(({ method, url }) => `${method} ${url}`);
  assert.ok(wanted.includes('POST /import') && wanted.includes('GET /export'));
  assert.deepEqual(
    named.toSorted(),
    wanted.toSorted(),
    `the list should be:\n${wanted.map((one) => `\`${one}\``).join(', ')}`,
  );
});
