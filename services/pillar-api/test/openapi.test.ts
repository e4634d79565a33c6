import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ApiAnswer } from '@colonnade/embedded';
import { fromPlain } from '@colonnade/value';
import { stackForTests, type TestStack } from '../../../test/support/stack.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { buildOpenApi, routesWithoutExample } from '../src/openapi/build.ts';
import { type Example, fillBody } from '../src/openapi/example.ts';
import { EXAMPLES } from '../src/openapi/examples.ts';
import { allRoutes } from '../src/routes/index.ts';
import { startOidcIssuer } from './oidc-issuer.ts';
import { etagOfAnswer, plain, sendPlain } from './support.ts';

const routes = allRoutes({} as never);

test('the document in the repository is that of the code, and every route has an example', async () => {
  const file = new URL('../openapi.generated.json', import.meta.url);
  const now = `${JSON.stringify(buildOpenApi(routes), undefined, 2)}\n`;
  assert.equal(await readFile(file, 'utf8'), now, 'run: node scripts/write-openapi.ts');
  assert.deepEqual(routesWithoutExample(routes), []);
  const names = new Set(routes.map(({ method, url }) => `${method} ${url}`));
  assert.deepEqual(
    EXAMPLES.filter(({ route }) => !names.has(route)).map(({ route }) => route),
    [],
    'examples of routes that are gone',
  );
});

describe('the document, served', () => {
  let stack: TestStack;
  const owned = new AsyncDisposableStack();
  /** What earlier examples kept. */
  const kept = new Map<string, unknown>();

  before(async () => {
    const dir = owned.use(await tempDir('openapi'));
    const issuer = owned.use(await startOidcIssuer('colonnade'));
    const roles = path.join(dir.path, 'roles.json');
    await writeFile(roles, '[{"group":"g","role":"viewer"}]');
    const env = { OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: 'colonnade', OIDC_ROLES_FILE: roles };
    // With all its neighbours: some examples ask a merger or the hook-runner.
    stack = owned.use(await stackForTests({ env }));
  });
  after(() => owned.disposeAsync());

  const fill = (text: string) => text.replace(/\$(\w+)/gu, (_, name: string) => String(kept.get(name) ?? ''));
  const urlOf = ({ route, params = {}, query }: Example) => {
    const url = (route.split(' ')[1] ?? '').replace(/:(\w+)/gu, (_, name: string) =>
      encodeURIComponent(fill(params[name] ?? '')),
    );
    if (query === undefined) return url;
    const filled = Object.entries(query).map(([name, text]): [string, string] => [name, fill(text)]);
    return `${url}?${new URLSearchParams(filled)}`;
  };

  const ask = async (example: Example, headers: Record<string, string>): Promise<ApiAnswer> => {
    const method = example.route.split(' ')[0] ?? '';
    const { text, body } = example;
    if (text !== undefined) {
      const type = { 'content-type': text.type };
      const response = await stack.api.stream(method, urlOf(example), {
        body: new Blob([text.body]).stream(),
        headers: { ...headers, ...type },
      });
      return { status: response.status, headers: response.headers, value: fromPlain(await response.json()) };
    }
    const filled = body && fillBody(body, (name) => kept.get(name.slice(1)));
    return sendPlain(stack.api, method, urlOf(example), filled, headers);
  };

  for (const example of EXAMPLES) {
    test(`${example.route}: ${example.summary}`, async () => {
      const { route, status, refused, ifMatch, ifNoneMatch, keep = {} } = example;
      const headers: Record<string, string> = ifNoneMatch === true ? { 'if-none-match': '*' } : {};
      if (ifMatch !== undefined) {
        headers['if-match'] = etagOfAnswer(await stack.api.send('GET', fill(ifMatch)));
      }
      if (example.bearer !== undefined) headers.authorization = `Bearer ${fill(example.bearer)}`;
      const shows = (one: ApiAnswer, field: string) =>
        field.split('.').reduce<unknown>((at, step) => (at as Record<string, unknown>)?.[step], plain(one));
      let answer = await ask(example, headers);
      if (example.later === true) {
        await waitFor(route, async () => {
          answer = await ask(example, headers);
          return answer.status === status && Object.values(keep).every((field) => shows(answer, field));
        });
      }
      assert.equal(answer.status, refused ?? status, JSON.stringify(plain(answer)));
      for (const [name, field] of Object.entries(keep)) {
        const found = shows(answer, field);
        assert.ok(['string', 'number'].includes(typeof found), `${field} of ${route}`);
        kept.set(name, found);
      }
    });
  }

  test('the document and its page are open to all, from here only, and nothing else is', async () => {
    const get = (url: string) => fetch(new URL(url, stack.stack.api.url));
    const document = await get('/openapi.json');
    assert.deepEqual(await document.json(), JSON.parse(JSON.stringify(buildOpenApi(routes))));
    for (const [url, type] of [
      ['/docs', /^text\/html/u],
      ['/docs/page.js', /^text\/javascript/u],
      ['/docs/page.css', /^text\/css/u],
    ] as const) {
      const answer = await get(url);
      assert.equal(answer.status, 200);
      assert.match(answer.headers.get('content-type') ?? '', type);
      const csp = answer.headers.get('content-security-policy') ?? '';
      assert.match(csp, /default-src 'none'; script-src 'self';/u);
      assert.ok(!csp.includes('unsafe'));
      const text = await answer.text();
      assert.ok(!/https?:\/\/|innerHTML|<script>|style=/u.test(text), url);
    }
    for (const url of ['/docs/', '/docs/../whoami', '/docs/page.ts']) {
      assert.equal((await get(url)).status, 401, url);
    }
  });
});
