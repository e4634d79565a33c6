import { minionPath } from '../minion/path.ts';

/** Of the inventory of a minion. */
export function inventoryPath(of: { master: string; id: string }): string {
  return `${minionPath(of)}/inventory`;
}
