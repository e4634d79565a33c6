export const MINION_ARGUMENTS = {
  master: { help: 'logical master' },
  id: { help: 'minion' },
} as const;

export function minionPath({ master, id }: { master: string; id: string }): string {
  return `/masters/${encodeURIComponent(master)}/minions/${encodeURIComponent(id)}`;
}
