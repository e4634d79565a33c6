import type { AuditSpan } from '@colonnade/audit';
import {
  type Call,
  ColonnadeError,
  type GrantedEndpoint,
  grantResource,
  type ObjectRef,
  type Ungranted,
} from '@colonnade/contracts';
import type { z } from 'zod';
import type { Grants } from './grants.ts';
import type { RevealPlace } from './reveal-scope.ts';
import { ANONYMOUS, type Trail } from './trail.ts';

/** A request that needs a grant for exactly it, and how that reads on record. */
type Guarded<Req extends z.ZodType> = {
  endpoint: GrantedEndpoint<Req>;
  message: Ungranted<Req> & { grant: string };
  call: Call;
  /** On record; the act itself unless said. */
  verb?: string;
  /** Where secrets are opened by it; none unless given. */
  reveals?: readonly RevealPlace[];
  objectRef: ObjectRef;
};

/** Something pillar-api asks on behalf of a user: only with a grant of that user's API token, and on record. */
export type GrantGuard = <T, Req extends z.ZodType>(
  guarded: Guarded<Req>,
  record: (span: AuditSpan, work: () => Promise<T>) => Promise<T>,
  work: (holder: { sub: string }) => Promise<T>,
) => Promise<T>;

export function createGrantGuard(grants: Grants, trail: Trail): GrantGuard {
  return async (guarded, record, work) => {
    const { endpoint, message, call, reveals = [] } = guarded;
    const act = endpoint.grant;
    const { holder, refusal } = await grants.use(
      message.grant,
      act,
      grantResource(endpoint, message),
      reveals,
    );
    const span = trail.begin({
      verb: guarded.verb ?? act,
      ...{ endpoint, call },
      user:
        holder === undefined
          ? ANONYMOUS
          : { username: holder.sub, groups: [`colonnade:api-token:${holder.tokenId}`] },
      caller: 'pillar-api',
      objectRef: guarded.objectRef,
    });
    return record(span, async () => {
      if (refusal !== undefined) throw refusal;
      if (holder === undefined) throw new ColonnadeError('internal', 'a grant without a holder');
      return work(holder);
    });
  };
}
