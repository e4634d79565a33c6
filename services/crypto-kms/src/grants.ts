import { createHash, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import {
  ColonnadeError,
  GRANT_AUDIENCE,
  GRANT_LIFETIME_S,
  type GrantAct,
  type READER_RIGHTS,
  zGrantClaims,
} from '@colonnade/contracts';
import { explainRefusal, isCompactToken } from '@colonnade/identity';
import { jwtVerify } from 'jose';
import type { z } from 'zod';
import type { Reader, Readers } from './readers.ts';
import { mayReveal, type RevealPlace } from './reveal-scope.ts';
import type { UsedGrants } from './used-grants.ts';

/** What came of a grant: without a refusal it was good, and is used up. The holder is known once the signature fits. */
type GrantUse = {
  holder?: { sub: string; tokenId: string };
  /** `unauthorized`, `forbidden` (the token lacks the right), or a fault of ours. */
  refusal?: ColonnadeError;
};

export type Grants = {
  /**
   * Checks that a grant is good for exactly this act on this resource, and uses it up. Never throws.
   * @param reveals where secrets are opened by it: the token must be one that may reveal there
   */
  use(grant: string, act: GrantAct, resource: string, reveals: readonly RevealPlace[]): Promise<GrantUse>;
};

type Right = (typeof READER_RIGHTS)[number];

/**
 * Any of these is enough, and where secrets are opened by the act, `reveal` beside it. An admin's token from before there were
 * tasks' identities has no right of that name.
 */
const RIGHTS_FOR: Readonly<Record<GrantAct, readonly [Right, ...Right[]]>> = {
  reveal: ['reveal'],
  reseal: ['reveal'],
  'master.issue': ['admin'],
  'master.revoke': ['admin'],
  'reader.put': ['admin'],
  'reader.delete': ['admin'],
  'key.rotate': ['admin'],
  'key.min-version': ['admin'],
  'key.destroy': ['admin'],
  'key.undestroy': ['admin'],
  'task.issue': ['task', 'admin'],
  'enrolment.make': ['admin'],
};

/** Seconds by which clocks of two hosts may differ. */
const SKEW_S = 5;

export function createGrants(readers: Readers, used: UsedGrants, nowS: () => number): Grants {
  return {
    async use(grant, act, resource, reveals) {
      const use: GrantUse = {};
      try {
        const { reader, claims } = await verifySignature(readers, grant, nowS());
        use.holder = { sub: reader.sub, tokenId: reader.token_id };
        checkPurpose(reader, claims, act, resource);
        checkReveals(reader, reveals);
        // Last: a grant that was refused for another reason is not used up.
        if (!(await used.use(reader.token_id, claims.jti))) throw refuse('was used already');
      } catch (thrown) {
        use.refusal = explainRefusal(thrown, 'the grant', 'is not a grant');
      }
      return use;
    },
  };
}

type GrantClaims = z.output<typeof zGrantClaims>;

function checkPurpose(reader: Reader, claims: GrantClaims, act: GrantAct, resource: string): void {
  if (claims.sub !== reader.sub) throw refuse("names another user than the API token's");
  if (claims.act !== act) throw refuse('is for another act');
  if (!equalSecretly(claims.res, resource)) throw refuse('is for another resource');
  const rights = RIGHTS_FOR[act];
  if (rights.some((right) => reader.rights.includes(right))) return;
  throw new ColonnadeError('forbidden', `the API token does not have the right "${rights[0]}"`);
}

/** What pillar-api checks as well: with its credential alone nobody gets round the roles of a token. */
function checkReveals(reader: Reader, reveals: readonly RevealPlace[]): void {
  if (reveals.length === 0) return;
  if (!reader.rights.includes('reveal'))
    throw new ColonnadeError('forbidden', 'the API token does not have the right "reveal"');
  if (reveals.every((place) => mayReveal(reader.reveal_scopes, place))) return;
  throw new ColonnadeError('forbidden', "the API token's right to reveal is for other targets or names");
}

async function verifySignature(readers: Readers, grant: string, nowS: number) {
  if (!isCompactToken(grant)) throw refuse('is not a grant');
  let reader: Reader | undefined;
  const keyOf = async ({ kid }: { kid?: string }): Promise<KeyObject> => {
    reader = kid === undefined ? undefined : await readers.find(kid);
    if (reader === undefined) throw refuse('is not signed by a known API token');
    if (reader.expires_at_ms !== null && reader.expires_at_ms <= nowS * 1000)
      throw refuse('is signed by an API token that has expired');
    return createSecretKey(reader.grant_key_hex, 'hex');
  };
  const { payload } = await jwtVerify(grant, keyOf, {
    algorithms: ['HS256'],
    audience: GRANT_AUDIENCE,
    requiredClaims: ['iat', 'exp'],
    clockTolerance: SKEW_S,
    // Refuses an `iat` in the future as well as one that is too old.
    maxTokenAge: GRANT_LIFETIME_S,
    currentDate: new Date(nowS * 1000),
  });
  const claims = zGrantClaims.safeParse(payload);
  if (!claims.success || reader === undefined) throw refuse('has a wrong or missing claim');
  if ((payload.exp ?? 0) - (payload.iat ?? 0) > GRANT_LIFETIME_S)
    throw refuse(`lives longer than ${GRANT_LIFETIME_S} s`);
  return { reader: reader as Reader, claims: claims.data };
}

function equalSecretly(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

function refuse(why: string): ColonnadeError {
  return new ColonnadeError('unauthorized', `the grant ${why}`);
}
