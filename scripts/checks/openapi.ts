import { readFileSync } from 'node:fs';
import path from 'node:path';
import { buildOpenApi, routesWithoutExample } from '../../services/pillar-api/src/openapi/build.ts';
import { allRoutes } from '../../services/pillar-api/src/routes/index.ts';

/** The document is that of the code, and every route has an example. Gives what is wrong, a line each. */
export function checkOpenApi(root: string): string[] {
  const routes = allRoutes({} as never);
  const missing = routesWithoutExample(routes).map(
    (route) => `${route} has no example: write one in services/pillar-api/src/openapi/examples.ts`,
  );
  const file = path.join(root, 'services/pillar-api/openapi.generated.json');
  const now = `${JSON.stringify(buildOpenApi(routes), undefined, 2)}\n`;
  const isStale = readFileSync(file, 'utf8') !== now;
  return isStale ? [...missing, `${file} is stale: node scripts/write-openapi.ts`] : missing;
}
