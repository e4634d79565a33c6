import { z } from 'zod';

/** `GET /changes`. `once`: what changed since Last-Event-ID, and the end; without it the stream goes on. */
export const zChangesQuery = z.strictObject({ once: z.enum(['true', 'false']).optional() });
