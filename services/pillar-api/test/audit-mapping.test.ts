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

/** Questions with a body: they change nothing. */
const QUESTIONS = ['POST /pillars/list', 'POST /pillars/search', 'POST /explain/preview'];
/** What reads, and shows a secret, a credential, who has one, or the whole estate. */
const READS_WITH_FLOOR = [
  ...['GET /tokens', 'GET /revocations', 'GET /export'],
  ...['GET /identity/pillars', 'GET /identity/minions/:id/pillars'],
];

test('whatever changes something has a floor; packages/audit names the exceptions of both kinds', async () => {
  const named = (wanted: (route: (typeof routes)[number]) => boolean) =>
    routes.filter(wanted).map(({ method, url }) => `${method} ${url}`);
  const without = named(({ method, audit }) => method !== 'GET' && audit.floor !== true);
  assert.deepEqual(without.toSorted(), QUESTIONS.toSorted());
  const reads = named(({ method, audit }) => method === 'GET' && audit.floor === true);
  assert.deepEqual(reads.toSorted(), READS_WITH_FLOOR.toSorted());
  const readme = await readFile(new URL('../../../packages/audit/README.md', import.meta.url), 'utf8');
  const [, list = ''] = /Over HTTP these are(.*?)\n\n/su.exec(readme) ?? [];
  const told = Array.from(list.matchAll(/`([A-Z]+ \/[^`]*)`/gu), ([, request]) => request ?? '');
  assert.deepEqual(told.toSorted(), [...QUESTIONS, ...READS_WITH_FLOOR].toSorted());
});
