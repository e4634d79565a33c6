import { z } from 'zod';
import { int } from '../codec.ts';
import { zRole, zScopedRole } from './tokens.ts';

/** `GET /limits`: every limit there is, so that nobody has to find one by running into it. */
export const zLimits = z.strictObject({
  /** Names end in their unit; those without one are counts. */
  limits: z.record(z.string(), int()),
  rates: z.strictObject({
    requests_per_minute: int(),
    requests_burst: int(),
    /** Requests that are denied, of one user or one address. */
    denials_per_minute: int(),
    /** Events of one service. */
    events_per_minute: int(),
    /** Open streams of changes, in this process. */
    change_streams: int(),
  }),
});

/** `GET /whoami` */
export const zWhoami = z.strictObject({
  sub: z.string(),
  /** Null for a bearer token of the issuer's. */
  token_id: z.string().nullable(),
  /** For the whole estate. */
  roles: z.array(zRole),
  scoped_roles: z.array(zScopedRole),
  /** Of all of them; those of scoped roles hold in their scopes only. */
  permissions: z.array(z.string()),
});
