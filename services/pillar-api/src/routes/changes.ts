import { zChangesQuery, zNothing } from '@colonnade/contracts';
import { z } from 'zod';
import type { Changes } from '../changes/changes.ts';
import { readEventId } from '../changes/event-id.ts';
import { decodeInput } from '../http/body.ts';
import type { Route } from '../http/route.ts';

/**
 * `GET /changes`: server-sent events of what changes, for user interfaces. `ready` first, then `changed` with the keys
 * of what is to be read again, or `reset` when that is everything. Last-Event-ID goes on where a stream ended.
 */
export function changesRoute(changes: Changes): Route {
  return {
    ...{ method: 'GET', url: '/changes', permission: 'estate:read', scope: 'target' },
    audit: { longRunning: true },
    docs: {
      ...{ query: zChangesQuery, body: zNothing, response: z.string(), idempotency: 'ignored' },
      mediaType: 'text/event-stream',
    },
    async run(request, reply, principal) {
      const { once } = decodeInput(zChangesQuery, request.query);
      const since = readEventId(request.headers['last-event-id']);
      reply.header('content-type', 'text/event-stream; charset=utf-8');
      // A proxy that waits for more before it hands on would make heartbeats of changes.
      reply.header('x-accel-buffering', 'no');
      if (request.method === 'HEAD') return '';
      return once === 'true' ? changes.once(principal, since) : changes.open(principal, since);
    },
  };
}
