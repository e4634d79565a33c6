import { z } from 'zod';
import { int, zValue } from './codec.ts';
import { zEnc } from './enc.ts';
import { batchOf, defineEndpoint, itemResult, subjectOf } from './endpoints.ts';
import { defineGranted, zGrant } from './grant.ts';
import { zScope } from './http/tokens.ts';
import { openForMergerWire } from './kms-open-wire.ts';
import { LIMITS } from './limits.ts';
import { zMasterId, zMinionId, zPillarName, zTgtType } from './names.ts';

const zPillarenv = z.string().min(1).max(1024);
/** Names of stored pillars: a record from before our rules must stay readable, so only the length is bounded. */
const zStoredName = z.string().min(1).max(1024);

/** What the KMS builds the AAD from (seed 000); it checks that the parts belong together. */
export const zSealContext = z.strictObject({
  tgt_type: zTgtType,
  tgt_id: z.string().min(1).max(1024),
  pillarenv: zPillarenv,
  name: zPillarName,
});
export const zOpenContext = zSealContext.extend({ tgt_id: z.string().max(1024), name: zStoredName });
export type OpenContext = z.infer<typeof zOpenContext>;
/** In a batch one faulty item must not spoil the others: what may be wrong with a single one is checked by the KMS. */
const zItemContext = zOpenContext;
/** A value with the marker `$enc`, as it is stored; the KMS checks the form and answers for each item. */
const zStoredEnc = zValue;

export const kmsSeal = defineEndpoint({
  subject: subjectOf('kms', 'seal.api'),
  server: 'crypto-kms',
  callers: ['pillar-api'],
  request: z.strictObject({ items: batchOf(z.strictObject({ context: zItemContext, value: zValue })) }),
  response: z.strictObject({ items: z.array(itemResult(zEnc)) }),
});

/** Reveal: one item, with a grant of the user who asks. */
export const kmsOpenForApi = defineGranted({
  subject: subjectOf('kms', 'open.api'),
  sealedAnswer: true,
  server: 'crypto-kms',
  callers: ['pillar-api'],
  grant: 'reveal',
  request: z.strictObject({ grant: zGrant, context: zItemContext, enc: zStoredEnc }),
  response: z.strictObject({ value: zValue }),
});

/**
 * Checks that `$enc` values given by a user open under exactly their AAD, without returning the plaintext.
 * Needs a reveal grant for each AAD: only who may read secrets may store sealed values.
 */
export const kmsVerifyForApi = defineGranted({
  subject: subjectOf('kms', 'verify.api'),
  server: 'crypto-kms',
  callers: ['pillar-api'],
  grant: 'reveal',
  request: z.strictObject({ grant: zGrant, context: zItemContext, enc: zStoredEnc }),
  response: z.strictObject({}),
});

/**
 * Opens each value under one AAD and seals it under another, for a rename or a move; no plaintext leaves the KMS. The
 * grant is for exactly these places, in this order, and its user may read secrets: who can choose where a secret
 * stands can choose who reads it.
 */
export const kmsReseal = defineGranted({
  subject: subjectOf('kms', 'reseal.api'),
  server: 'crypto-kms',
  callers: ['pillar-api'],
  grant: 'reseal',
  request: z.strictObject({
    grant: zGrant,
    items: batchOf(z.strictObject({ from: zItemContext, to: zItemContext, enc: zStoredEnc })),
  }),
  response: z.strictObject({ items: z.array(itemResult(zEnc)) }),
});

/**
 * Whether kept `$enc` values still open in their own place: the key is known and nothing was changed. Needs no grant,
 * since it moves nothing and shows nothing.
 */
export const kmsCheck = defineEndpoint({
  subject: subjectOf('kms', 'check.api'),
  server: 'crypto-kms',
  callers: ['pillar-api'],
  request: z.strictObject({ items: batchOf(z.strictObject({ context: zItemContext, enc: zStoredEnc })) }),
  response: z.strictObject({ items: z.array(itemResult(z.strictObject({}))) }),
});

/** How a DEK is wrapped: the part of `$enc` that a change of the KEK changes. */
const zWrapping = z.strictObject({
  kid: z.string().min(1).max(128),
  dek_wrap_nonce_b64: z.string().max(32),
  dek_wrapped_b64: z.string().max(128),
});

/**
 * Wraps the DEKs of kept values under the key that seals now. Neither the values nor their places change, so it needs no
 * grant; the values stay where they are.
 */
export const kmsRewrap = defineEndpoint({
  subject: subjectOf('kms', 'rewrap.api'),
  server: 'crypto-kms',
  callers: ['pillar-api'],
  request: z.strictObject({ items: batchOf(zWrapping.extend({ context: zItemContext })) }),
  response: z.strictObject({ items: z.array(itemResult(zWrapping)) }),
});

/** A merge: everything under one master's token, for one minion. */
export const kmsOpenForMerger = defineEndpoint({
  subject: subjectOf('kms', 'open.merger'),
  sealedAnswer: true,
  server: 'crypto-kms',
  callers: ['pillar-merger'],
  request: z.strictObject({
    token: z.string().min(1).max(8192),
    master: zMasterId,
    minion_id: zMinionId,
    items: batchOf(z.strictObject({ context: zItemContext, enc: zStoredEnc })),
  }),
  response: z.strictObject({ items: z.array(itemResult(zValue)) }),
  wire: openForMergerWire,
});

/** HMAC of a SHA-256 under a key only the KMS has: fingerprints of idempotent requests. */
export const kmsMac = defineEndpoint({
  subject: subjectOf('kms', 'mac.api'),
  server: 'crypto-kms',
  callers: ['pillar-api'],
  request: z.strictObject({ sha256_hex: z.string().regex(/^[0-9a-f]{64}$/u) }),
  response: z.strictObject({ mac_hex: z.string().regex(/^[0-9a-f]{64}$/u) }),
});

/** `task`: may make the identities of tasks. */
export const READER_RIGHTS = ['reveal', 'admin', 'task'] as const;
/** Registers the grant key of a new API token; the grant is an admin's. */
export const kmsPutReader = defineGranted({
  subject: subjectOf('kms', 'readers-put.api'),
  server: 'crypto-kms',
  callers: ['pillar-api'],
  grant: 'reader.put',
  request: z.strictObject({
    grant: zGrant,
    token_id: z.string().regex(/^[A-Za-z0-9]{8,32}$/u),
    sub: z.string().min(1).max(128),
    rights: z.array(z.enum(READER_RIGHTS)).min(1),
    /** Where the right `reveal` holds: in one of these; without them everywhere. */
    reveal_scopes: z.array(zScope).min(1).max(LIMITS.scopedRoles).optional(),
    grant_key_hex: z.string().regex(/^[0-9a-f]{64}$/u),
    /** Milliseconds since the epoch. */
    expires_at_ms: int({ min: 0 }).nullable(),
  }),
  response: z.strictObject({}),
});

export const kmsDeleteReader = defineGranted({
  subject: subjectOf('kms', 'readers-delete.api'),
  server: 'crypto-kms',
  callers: ['pillar-api'],
  grant: 'reader.delete',
  request: z.strictObject({ grant: zGrant, token_id: z.string().min(1).max(32) }),
  response: z.strictObject({ deleted: z.boolean() }),
});

export const IDENTITY_ISSUER = 'colonnade';
export const BRIDGE_AUDIENCE = 'colonnade:bridge';
/** `typ` in the header of a master's token: no other token of the same issuer can stand in for one (RFC 8725, 3.11). */
export const MASTER_TOKEN_TYP = 'colonnade-master+jwt';

/**
 * What makes a token that of a master, for whoever verifies one, as the options of jose's `jwtVerify`. One set of rules:
 * with several, a token passes in one place and is refused in another. Whose it is, and whether it was revoked, is each
 * verifier's own question.
 */
export const masterTokenRules = {
  algorithms: ['EdDSA'],
  typ: MASTER_TOKEN_TYP,
  issuer: IDENTITY_ISSUER,
  audience: BRIDGE_AUDIENCE,
  requiredClaims: ['sub', 'iat', 'nbf', 'exp', 'jti'],
  /** Seconds by which the clocks of two hosts may differ. */
  clockTolerance: 5,
};
/** `sub` of a master's token. */
export function masterSubject(master: string): string {
  return `master:${master}`;
}

/** Makes a token for a logical master; returned once, kept nowhere. */
export const kmsIssueMaster = defineGranted({
  subject: subjectOf('kms', 'identity-issue.api'),
  sealedAnswer: true,
  server: 'crypto-kms',
  callers: ['pillar-api'],
  grant: 'master.issue',
  request: z.strictObject({
    grant: zGrant,
    master: zMasterId,
    lifetime_s: int({ min: 60, max: 366 * 86400 }),
  }),
  response: z.strictObject({ token: z.string(), jti: z.string(), expires_at_ms: int() }),
});

export const kmsRevokeIdentity = defineGranted({
  subject: subjectOf('kms', 'identity-revoke.api'),
  server: 'crypto-kms',
  callers: ['pillar-api'],
  grant: 'master.revoke',
  request: z.strictObject({ grant: zGrant, jti: z.string().min(16).max(64) }),
  response: z.strictObject({}),
});

export const zPublicJwk = z.union([
  z.strictObject({
    ...{ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string() },
    ...{ kid: z.string(), use: z.literal('sig'), alg: z.literal('EdDSA') },
  }),
  z.strictObject({
    ...{ kty: z.literal('EC'), crv: z.literal('P-256'), x: z.string(), y: z.string() },
    ...{ kid: z.string(), use: z.literal('sig'), alg: z.literal('ES256') },
  }),
]);
export type PublicJwk = z.output<typeof zPublicJwk>;

/** The public keys of all identities, RFC 7517; also at `GET /.well-known/jwks.json`. */
export const kmsJwks = defineEndpoint({
  subject: subjectOf('kms', 'jwks'),
  server: 'crypto-kms',
  callers: ['pillar-api', 'pillar-merger', 'operator'],
  request: z.strictObject({}),
  response: z.strictObject({
    /** `iss` of workloads' tokens. */
    issuer: z.string(),
    keys: z.array(zPublicJwk),
    /** Which of them are for masters' tokens, and for nothing else; all others are for identities alone. */
    master_kids: z.array(z.string()),
  }),
});
export type Jwks = z.output<typeof kmsJwks.response>;
