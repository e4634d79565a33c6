import {
  BULK_MEDIA_TYPES,
  ColonnadeError,
  restartCall,
  zImportQuery,
  zImportReport,
} from '@colonnade/contracts';
import { importEstate } from '../bulk/import.ts';
import type { Estate } from '../estate.ts';
import type { Route } from '../http/route.ts';
import { type BulkFormat, defineStreamedRoute } from '../http/streamed-route.ts';
import type { Kms } from '../kms.ts';
import { settleAll } from '../membership/settle.ts';
import type { Schemas } from '../templates/schemas.ts';

/** Imports of one process at a time: each holds memory for the names of its records, and the switch is one transaction. */
const AT_ONCE = 1;

/** Many records in one request, all or nothing; see `bulk/import.ts`. */
export function importRoute(
  estate: Estate,
  kms: Kms,
  schemas: Pick<Schemas, 'check'>,
  requestBudgetMs: number,
): Route {
  let running = 0;
  return defineStreamedRoute({
    method: 'POST',
    url: '/import',
    permission: 'pillar:write',
    scope: 'estate',
    query: zImportQuery,
    accepts: Object.values(BULK_MEDIA_TYPES),
    response: zImportReport,
    async handle({ principal, query, body, call }) {
      if (body === undefined) throw new ColonnadeError('bad_request', 'the request needs a body');
      const format: BulkFormat = body.mediaType === BULK_MEDIA_TYPES.yaml ? 'yaml' : 'json';
      if (query.format !== undefined && query.format !== format) {
        throw new ColonnadeError('unprocessable', 'format: is not what the Content-Type says', {
          field: 'format',
        });
      }
      if (running >= AT_ONCE) throw new ColonnadeError('overloaded', 'another import is under way');
      running += 1;
      try {
        const report = await importEstate(
          // It takes longer than a request may wait for other services: each of those calls has the time to itself.
          {
            ...{ store: estate.store, kms, schemas },
            newCall: () => restartCall(requestBudgetMs, call),
          },
          {
            // Not destroyed when the rest is not read: the answer goes over the same connection.
            stream: body.stream.iterator({ destroyOnReturn: false }),
            ...{ format, principal, confirm: query.confirm },
            dryRun: query.dry_run === 'true',
            replaceSecrets: query.replace_secrets === 'true',
          },
        );
        if (query.dry_run !== 'true') await settleAll(estate, principal.sub);
        return { status: 200, body: report };
      } finally {
        running -= 1;
      }
    },
  });
}
