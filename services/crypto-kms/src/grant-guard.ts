import type { AuditSpan } from '@colonnade/audit';
import {
  type Call,
  ColonnadeError,
  type Endpoint,
  type GrantAct,
  type ObjectRef,
} from '@colonnade/contracts';
import type { Grants } from './grants.ts';
import type { RevealPlace } from './reveal-scope.ts';
import { ANONYMOUS, type Trail } from './trail.ts';

/** What a grant has to be good for, and how that reads on record. */
type Guarded = {
  endpoint: Endpoint;
  call: Call;
  /** On record; the act itself unless said. */
  verb?: string;
  act: GrantAct;
  grant: string;
  /** What `res` of the grant names. */
  resource: string;
  /** Where secrets are opened by it; none unless given. */
  reveals?: readonly RevealPlace[];
  objectRef: ObjectRef;
};

/** Something pillar-api asks on behalf of a user: only with a grant of that user's API token, and on record. */
export type GrantGuard = <T>(
  guarded: Guarded,
  record: (span: AuditSpan, work: () => Promise<T>) => Promise<T>,
  work: (holder: { sub: string }) => Promise<T>,
) => Promise<T>;

export function createGrantGuard(grants: Grants, trail: Trail): GrantGuard {
  return async (guarded, record, work) => {
    const { grant, act, resource, reveals = [] } = guarded;
    const { holder, refusal } = await grants.use(grant, act, resource, reveals);
    const span = trail.begin({
      verb: guarded.verb ?? act,
      endpoint: guarded.endpoint,
      call: guarded.call,
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
