export { linesOf } from './lines.ts';
export { recordsFromMinionFiles } from './minion-files.ts';
export type { Converted, Note, Problem } from './problem.ts';
export { recordsFromSaltTree, type SaltTreeOptions } from './salt-tree.ts';
