export { COMMANDS } from './commands.ts';
export { renderReadme } from './table/readme.ts';
