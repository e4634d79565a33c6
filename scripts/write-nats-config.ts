import { writeFileSync } from 'node:fs';
import { renderProductionNatsConfig } from '../packages/bus/src/index.ts';

/** Writes infra/nats/colonnade.conf anew from the contracts. */
writeFileSync(new URL('../infra/nats/colonnade.conf', import.meta.url), renderProductionNatsConfig());
