import { writeFileSync } from 'node:fs';
import { buildOpenApi } from '../services/pillar-api/src/openapi/build.ts';
import { allRoutes } from '../services/pillar-api/src/routes/index.ts';

/** Writes services/pillar-api/openapi.generated.json anew. */
const text = `${JSON.stringify(buildOpenApi(allRoutes({} as never)), undefined, 2)}\n`;
writeFileSync(new URL('../services/pillar-api/openapi.generated.json', import.meta.url), text);
