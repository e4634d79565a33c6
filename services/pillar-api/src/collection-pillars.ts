import { LIMITS } from '@colonnade/contracts';
import type { EstateStore, PillarRecord } from '@colonnade/estate-store';

/** Rows read at once: they come with their values, of up to 256 KiB each. */
const CHUNK_ROWS = 50;

type Named = { pid: string; name: string; is_secret: boolean };

/**
 * Names the pillars of a collection itself (not those it inherits), in the order of their pids: the way back to a pid,
 * since seed 000 keeps them out of the list of pillars.
 */
export async function nameCollectionPillars(
  store: Pick<EstateStore, 'listPillars'>,
  id: string,
  isVisible: (pillar: PillarRecord) => boolean = () => true,
  limit: number = LIMITS.pageRows,
): Promise<{ pillars: Named[]; pillars_more: boolean }> {
  const pillars: Named[] = [];
  let after: string | undefined;
  do {
    const page = { after, limit: Math.min(CHUNK_ROWS, limit - pillars.length) };
    const { rows, next } = await store.listPillars({ tgtTypes: ['collection'], tgtId: id }, page);
    pillars.push(
      ...rows.filter(isVisible).map(({ pid, name, isSecret }) => ({ pid, name, is_secret: isSecret })),
    );
    after = next;
  } while (after !== undefined && pillars.length < limit);
  return { pillars, pillars_more: after !== undefined };
}
