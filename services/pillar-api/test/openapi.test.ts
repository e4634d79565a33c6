import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { tempDir } from '../../../test/support/temp.ts';
import { buildOpenApi, routesWithoutExample } from '../src/openapi/build.ts';
import type { Example } from '../src/openapi/example.ts';
import { EXAMPLES } from '../src/openapi/examples.ts';
import { allRoutes } from '../src/routes/index.ts';
import { startOidcIssuer } from './oidc-issuer.ts';
import { type ApiWorld, etagOfAnswer, plain, sendPlain, startWorld } from './support.ts';

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
  let world: ApiWorld;
  const owned = new AsyncDisposableStack();
  /** What earlier examples kept. */
  const kept = new Map<string, string>();

  before(async () => {
    const dir = owned.use(await tempDir('openapi'));
    const issuer = owned.use(await startOidcIssuer('colonnade'));
    const roles = path.join(dir.path, 'roles.json');
    await writeFile(roles, '[{"group":"g","role":"viewer"}]');
    const env = { OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: 'colonnade', OIDC_ROLES_FILE: roles };
    world = owned.use(await startWorld({ env }));
  });
  after(() => owned.disposeAsync());

  const fill = (text: string) => text.replace(/\$(\w+)/gu, (_, name: string) => kept.get(name) ?? '');
  const urlOf = ({ route, params = {}, query }: Example) => {
    const url = (route.split(' ')[1] ?? '').replace(/:(\w+)/gu, (_, name: string) =>
      encodeURIComponent(fill(params[name] ?? '')),
    );
    if (query === undefined) return url;
    const filled = Object.entries(query).map(([name, text]): [string, string] => [name, fill(text)]);
    return `${url}?${new URLSearchParams(filled)}`;
  };

  for (const example of EXAMPLES) {
    test(`${example.route}: ${example.summary}`, { skip: example.notRun ?? false }, async () => {
      const { route, body, status, ifMatch, ifNoneMatch, keep = {} } = example;
      const headers: Record<string, string> = ifNoneMatch === true ? { 'if-none-match': '*' } : {};
      if (ifMatch !== undefined) {
        headers['if-match'] = etagOfAnswer(await world.admin.send('GET', fill(ifMatch)));
      }
      const answer = await sendPlain(world.admin, route.split(' ')[0] ?? '', urlOf(example), body, headers);
      assert.equal(answer.status, status, JSON.stringify(plain(answer)));
      for (const [name, field] of Object.entries(keep)) {
        const found = field.split('.').reduce<unknown>((at, step) => (at as never)[step], plain(answer));
        assert.ok(['string', 'number'].includes(typeof found), `${field} of ${route}`);
        kept.set(name, String(found));
      }
    });
  }

  test('the document and its page are open to all, from here only, and nothing else is', async () => {
    const get = (url: string) => fetch(new URL(url, world.api.url));
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
