import path from 'node:path';

/** Where the policies of one minion stand: those in force, the next ones during a generation, those before. */
export type PolicyFolders = { current: string; next: string; archive: string };

/**
 * Rudder's layout below `share` (seed 002), with the master above the minion, since two masters may have minions of one
 * name. Neither id can hold a slash or be `..`.
 */
export function policyFolders(stateDir: string, master: string, minion: string): PolicyFolders {
  const base = path.join(stateDir, 'share', master, minion);
  return {
    current: path.join(base, 'rules'),
    next: path.join(base, 'rules.new'),
    archive: path.join(base, 'rules.archive'),
  };
}
