// Writes the tables of packages/cli/README.md from the commands themselves.
import { readFileSync, writeFileSync } from 'node:fs';
import { COMMANDS, renderReadme } from '../packages/cli/src/index.ts';

const file = new URL('../packages/cli/README.md', import.meta.url);
writeFileSync(file, renderReadme(readFileSync(file, 'utf8'), COMMANDS));
