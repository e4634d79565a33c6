import { createHash, createHmac } from 'node:crypto';
import { z } from 'zod';
import { encode } from './codec.ts';
import { defineEndpoint, type Endpoint } from './endpoints.ts';

export const GRANT_AUDIENCE = 'crypto-kms';
/** Seconds a grant may be old. */
export const GRANT_LIFETIME_S = 30;
export const GRANT_ACTS = [
  'reveal',
  'reseal',
  'master.issue',
  'master.revoke',
  'reader.put',
  'reader.delete',
  'key.rotate',
  'key.min-version',
  'key.destroy',
  'key.undestroy',
  'task.issue',
  'enrolment.make',
] as const;
export type GrantAct = (typeof GRANT_ACTS)[number];

/**
 * Claims of a grant: an HS256 JWT, `kid` = id of the user's API token, key = deriveGrantKey(token). `res` is the one request it
 * is good for, as grantResource has it. Used once (jti).
 */
export const zGrantClaims = z.object({
  aud: z.literal(GRANT_AUDIENCE),
  sub: z.string().min(1),
  act: z.enum(GRANT_ACTS),
  res: z.string().min(1).max(8192),
  jti: z.string().min(16).max(64),
});
export const zGrant = z.string().min(1).max(16384);

/** An endpoint that answers only to a grant. */
export type GrantedEndpoint<Req extends z.ZodType = z.ZodType, Res extends z.ZodType = z.ZodType> = Endpoint<
  Req,
  Res
> & { grant: GrantAct };

/** As defineEndpoint, for one that answers only to a grant; its request has a field `grant`. */
export function defineGranted<Req extends z.ZodType, Res extends z.ZodType>(
  endpoint: Omit<GrantedEndpoint<Req, Res>, 'name'>,
): GrantedEndpoint<Req, Res> {
  return { ...defineEndpoint(endpoint), grant: endpoint.grant };
}

/** What such an endpoint is asked, beside the grant. */
export type Ungranted<Req extends z.ZodType> = Omit<z.output<Req>, 'grant'>;

/**
 * The key that grants of an API token are signed with: derived, so that crypto-kms can verify a grant without ever
 * seeing the token, and pillar-api cannot make one after the request that carried the token is over.
 * @returns 32 bytes
 */
export function deriveGrantKey(apiToken: string): Buffer {
  return createHmac('sha256', apiToken).update('colonnade/grant/v1').digest();
}

/**
 * `res` of a grant: a digest of the endpoint and of everything it is asked, so that whoever sees a grant on its way can have
 * nothing else done with it: no other key registered, no more rights, no longer life, no other sealed value opened.
 * @param message a grant in it is not looked at
 */
export function grantResource<Req extends z.ZodType>(
  endpoint: Pick<GrantedEndpoint<Req>, 'subject' | 'request'>,
  message: Ungranted<Req>,
): string {
  // The schema wants one; which, does not matter.
  const asked = { ...message, grant: '-' } as z.output<Req>;
  const digest = createHash('sha256').update(`${endpoint.subject}\n`).update(encode(endpoint.request, asked));
  return `sha256:${digest.digest('hex')}`;
}

const API_TOKEN = /^col_([A-Za-z0-9]{8,32})_([A-Za-z0-9_-]{43})$/u;

/** The public id of an API token `col_<id>_<43 base64url characters>`, or undefined when it is malformed. */
export function apiTokenId(token: string): string | undefined {
  return API_TOKEN.exec(token)?.[1];
}

/** API tokens, one-time tokens of hosts that enrol, and JWTs. */
const ANY_TOKEN =
  /(col_[A-Za-z0-9]{8,32}_|cole_[A-Za-z0-9-]{16,64}_)[\w-]{43}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}/gu;

/** The text without tokens that stand where none belongs, such as a whole API token in place of its id, or a JWT in a URL. */
export function hideTokens(text: string): string {
  if (!/cole?_|eyJ/u.test(text)) return text;
  return text.replace(ANY_TOKEN, (_, id: string | undefined) => `${id ?? ''}*******`);
}

/** Who the API token of the bootstrap file belongs to, for pillar-api and crypto-kms alike. */
export const BOOTSTRAP_SUB = 'bootstrap-admin';
