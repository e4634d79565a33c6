import { writeFileSync } from 'node:fs';
import { buildAsyncApi } from '../packages/contracts/src/asyncapi.ts';

/** Writes packages/contracts/asyncapi.generated.json anew. */
const text = `${JSON.stringify(buildAsyncApi(), undefined, 2)}\n`;
writeFileSync(new URL('../packages/contracts/asyncapi.generated.json', import.meta.url), text);
