import { readFileSync } from 'node:fs';
import type { OpsRoute } from '@colonnade/service-kit';
import type { Route } from '../http/route.ts';
import { buildOpenApi } from './build.ts';

/** Nothing from elsewhere, nothing inline, in no frame. */
const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};

const PAGE = [
  { path: '/docs', file: 'index.html', contentType: 'text/html; charset=utf-8' },
  { path: '/docs/page.js', file: 'page.js', contentType: 'text/javascript; charset=utf-8' },
  { path: '/docs/page.css', file: 'page.css', contentType: 'text/css; charset=utf-8' },
];

/**
 * The document and a page that shows it: open to all, since both are the same in every estate and say nothing of
 * any. A browser sends no token when somebody follows a link.
 */
export function openApiRoutes(routes: readonly Route[]): readonly OpsRoute[] {
  const document = JSON.stringify(buildOpenApi(routes));
  const page = PAGE.map(({ path, file, contentType }) => {
    const body = readFileSync(new URL(`docs-page/${file}`, import.meta.url), 'utf8');
    return { path, answer: () => ({ status: 200, contentType, body, headers: PAGE_HEADERS }) };
  });
  return [
    {
      path: '/openapi.json',
      answer: () => ({ status: 200, contentType: 'application/json; charset=utf-8', body: document }),
    },
    ...page,
  ];
}
