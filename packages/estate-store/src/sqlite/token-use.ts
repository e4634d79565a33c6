import type { Db } from './connection.ts';
import type { Jobs } from './protocol.ts';

/** Outside of the clock: nothing that anybody may have cached changes. */
export function noteTokenUse(db: Db, { id, atMs }: Jobs['noteTokenUse']['ask']): undefined {
  db.run(
    'UPDATE tokens SET last_used_at_ms = ? WHERE id = ? AND coalesce(last_used_at_ms, 0) < ?',
    ...[atMs, id, atMs],
  );
}
