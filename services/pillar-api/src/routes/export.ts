import { Readable } from 'node:stream';
import { BULK_MEDIA_TYPES, zExportQuery, zNothing } from '@colonnade/contracts';
import { requirePermission } from '../auth/permissions.ts';
import { exportEstate } from '../bulk/export.ts';
import type { Estate } from '../estate.ts';
import type { Route } from '../http/route.ts';
import { defineStreamedRoute } from '../http/streamed-route.ts';

/** How long one export may hold on to its moment: SQLite's WAL grows meanwhile. Milliseconds. */
const LONGEST_MS = 10 * 60_000;

/** The whole estate, of one moment. Secrets leave it sealed or not at all, and only for who may open them. */
export function exportRoute(estate: Estate): Route {
  return defineStreamedRoute({
    method: 'GET',
    url: '/export',
    permission: 'estate:read',
    scope: 'estate',
    query: zExportQuery,
    answers: Object.values(BULK_MEDIA_TYPES),
    response: zNothing,
    async handle({ principal, query }) {
      const { format = 'yaml', secrets = 'sealed' } = query;
      if (secrets === 'sealed') requirePermission(principal.access.whole, 'secret:reveal');
      const view = await estate.store.openView();
      const stream = Readable.from(exportEstate(view, { format, secrets }), { objectMode: false });
      const timer = setTimeout(
        () => stream.destroy(new Error('the export took too long')),
        LONGEST_MS,
      ).unref();
      // Also when nobody reads any more: the moment is let go of.
      stream.once('close', () => {
        clearTimeout(timer);
        void view[Symbol.asyncDispose]();
      });
      return { status: 200, mediaType: `${BULK_MEDIA_TYPES[format]}; charset=utf-8`, stream };
    },
  });
}
