import { z } from 'zod';
import { int, zValue } from './codec.ts';
import { batchOf, defineEndpoint, itemResult, subjectOf } from './endpoints.ts';
import { defineGranted, zGrant } from './grant.ts';
import { zOpenContext } from './kms.ts';
import { zMasterId, zMinionId, zTaskId, zTemplateId, zUserSub } from './names.ts';
import { minionEnv, type ParsedEnv, parseEnv, taskEnv, taskTemplateEnv } from './pillarenv.ts';

/** `typ` of a workload's token: no other token of the same issuer can stand in for one (RFC 8725, 3.11). */
export const WORKLOAD_TOKEN_TYP = 'colonnade-workload+jwt';
/** `aud` of a token for Colonnade itself. One for anybody else opens no door here. */
export const WORKLOAD_AUDIENCE = 'colonnade';
/** The most a token may live, seconds; who needs longer renews it. */
export const WORKLOAD_LIFETIME_S = 15 * 60;
/** EdDSA by default; ES256 for those who do not take it, such as kube-apiserver. */
export const WORKLOAD_ALGORITHMS = ['EdDSA', 'ES256'] as const;
export type WorkloadAlgorithm = (typeof WORKLOAD_ALGORITHMS)[number];
/** Seconds by which the clocks of two hosts may differ. */
export const WORKLOAD_SKEW_S = 5;
/** How old public keys may be that a service verifies with or publishes, milliseconds. */
export const JWKS_MAX_AGE_MS = 15_000;
/**
 * How long services verify identities with keys they cannot read anew, milliseconds. Beyond it none is let in: which key was barred meanwhile,
 * nobody told them.
 */
export const JWKS_TRUST_MS = 5 * 60_000;
/** How long whoever reads published keys over HTTP may keep them, seconds. A next key is published for longer than both before it signs. */
export const JWKS_KEEP_S = 30;

export const zServiceName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,47}$/u, 'a service name is 1–48 of a–z 0–9 - and begins with a letter');

/**
 * What an identity is about (seed 003). `owner`: the user who made the task; of the template's pillars the task has
 * those that this user saved.
 */
export const zWorkload = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('task'), task: zTaskId, template: zTemplateId, owner: zUserSub }),
  z.strictObject({ kind: z.literal('minion'), master: zMasterId, minion: zMinionId }),
  z.strictObject({ kind: z.literal('master'), master: zMasterId }),
  z.strictObject({ kind: z.literal('service'), service: zServiceName }),
]);
export type Workload = z.infer<typeof zWorkload>;

/** `sid` of a token that came of an enrolment: what is taken back when the enrolled host is lost. */
const zSid = z.string().regex(/^[A-Za-z0-9_-]{16,64}$/u);

/** The claims of a workload's token that are ours; those of RFC 7519 are checked by the library as well. */
export const zWorkloadClaims = z.object({
  iss: z.string().min(1).max(512),
  sub: z.string().min(1).max(512),
  aud: z.union([z.string(), z.array(z.string()).min(1).max(8)]),
  exp: z.number().int().nonnegative(),
  nbf: z.number().int().nonnegative(),
  iat: z.number().int().nonnegative(),
  jti: z.string().min(16).max(64),
  sid: zSid.optional(),
  /** Version of the key that signed the first token of those this one was renewed from; absent in older ones. */
  gen: z.number().int().min(1).optional(),
  colonnade: zWorkload,
});
export type WorkloadClaims = z.infer<typeof zWorkloadClaims>;

/** `sub` of a workload's token. Ids hold no ":", so no two workloads share one. */
export function workloadSubject(workload: Workload): string {
  switch (workload.kind) {
    case 'task':
      return `task:${workload.task}`;
    case 'minion':
      return `minion:${workload.master}:${workload.minion}`;
    case 'master':
      return `master:${workload.master}`;
    case 'service':
      return `service:${workload.service}`;
  }
}

/**
 * The scopes whose pillars a workload may have, secrets included (seed 003): a task its own and what its owner saved of
 * its template, a minion its own. Nothing else; a master names the minion.
 */
export function ownScopes(
  workload: Workload,
): readonly { tgtType: 'task' | 'task_tpl' | 'minion'; tgtId: string; pillarenv: string }[] {
  switch (workload.kind) {
    case 'task': {
      const { task, template, owner } = workload;
      return [
        { tgtType: 'task_tpl', tgtId: template, pillarenv: taskTemplateEnv(template, owner) },
        { tgtType: 'task', tgtId: task, pillarenv: taskEnv(task) },
      ];
    }
    case 'minion': {
      const { master, minion } = workload;
      return [{ tgtType: 'minion', tgtId: minion, pillarenv: minionEnv(minion, master) }];
    }
    case 'master':
    case 'service':
      return [];
  }
}

/** Whether a stored pillar lies in a workload's reach: one of its own scopes, and of a master any of its minions'. */
export function isOwnScope(
  workload: Workload,
  context: { tgt_type: string; tgt_id: string; pillarenv: string },
): boolean {
  if (ownScopes(workload).some((one) => isSame(one, context))) return true;
  if (workload.kind !== 'master' || context.tgt_type !== 'minion') return false;
  const env: ParsedEnv = parseEnv(context.pillarenv);
  return env.kind === 'minion' && env.master === workload.master && env.minionId === context.tgt_id;
}

function isSame(
  one: { tgtType: string; tgtId: string; pillarenv: string },
  context: { tgt_type: string; tgt_id: string; pillarenv: string },
): boolean {
  return (
    one.tgtType === context.tgt_type && one.tgtId === context.tgt_id && one.pillarenv === context.pillarenv
  );
}

export const zWorkloadToken = z.string().min(1).max(8192);
const zIssued = z.strictObject({
  token: z.string(),
  jti: z.string(),
  /** Milliseconds since the epoch. */
  expires_at_ms: int({ min: 0 }),
});

/** Makes the identity of a task, with a grant of whoever makes the task; it is the owner. */
export const kmsIssueTask = defineGranted({
  subject: subjectOf('kms', 'identity-task.api'),
  sealedAnswer: true,
  server: 'crypto-kms',
  callers: ['pillar-api'],
  grant: 'task.issue',
  request: z.strictObject({ grant: zGrant, task: zTaskId, template: zTemplateId }),
  response: zIssued,
});

/** Names an audience of the operator's choice; those of Colonnade itself are not among them. */
export const zAudience = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}$/u, 'audience must be 1–256 of A–Z a–z 0–9 . _ : / -');

/**
 * A next token for the same workload, for the one it has. With an audience, one for somebody else, which renews nothing.
 * With a minion, a master's identity gives that of one of its minions.
 */
export const kmsRenewWorkload = defineEndpoint({
  subject: subjectOf('kms', 'identity-renew.api'),
  sealedAnswer: true,
  server: 'crypto-kms',
  callers: ['pillar-api'],
  request: z.strictObject({
    token: zWorkloadToken,
    audience: zAudience.optional(),
    algorithm: z.enum(WORKLOAD_ALGORITHMS).optional(),
    minion: zMinionId.optional(),
  }),
  response: zIssued,
});

export const ENROLMENT_TOKEN = /^cole_([A-Za-z0-9-]{16,64})_([A-Za-z0-9_-]{43})$/u;
/** The most a one-time token waits for its host, seconds. */
export const ENROLMENT_LIFETIME_MAX_S = 7 * 86_400;

/** Makes a one-time token, with an admin's grant: shown once, of which only the hash is kept. */
export const kmsMakeEnrolment = defineGranted({
  subject: subjectOf('kms', 'enrolment-make.api'),
  sealedAnswer: true,
  server: 'crypto-kms',
  callers: ['pillar-api'],
  grant: 'enrolment.make',
  request: z.strictObject({
    grant: zGrant,
    workload: zWorkload,
    sid: zSid,
    lifetime_s: int({ min: 60, max: ENROLMENT_LIFETIME_MAX_S }),
  }),
  response: z.strictObject({ token: z.string(), expires_at_ms: int({ min: 0 }) }),
});

/** Takes a one-time token for the first identity of the host that has it. It is used up, whatever becomes of the answer. */
export const kmsEnrol = defineEndpoint({
  subject: subjectOf('kms', 'enrolment-use.api'),
  sealedAnswer: true,
  server: 'crypto-kms',
  callers: ['pillar-api'],
  request: z.strictObject({ token: z.string().regex(ENROLMENT_TOKEN, 'is no one-time token') }),
  response: zIssued.extend({ workload: zWorkload }),
});

/** Opens what a workload may have, under its own token; the KMS checks signature, state and scope itself. */
export const kmsOpenForWorkload = defineEndpoint({
  subject: subjectOf('kms', 'open.workload'),
  sealedAnswer: true,
  server: 'crypto-kms',
  callers: ['pillar-api'],
  request: z.strictObject({
    token: zWorkloadToken,
    items: batchOf(z.strictObject({ context: zOpenContext, enc: zValue })),
  }),
  response: z.strictObject({ items: z.array(itemResult(zValue)) }),
});

/** Every endpoint about workloads, for the list that rights are made of. */
export const WORKLOAD_ENDPOINTS = [
  kmsIssueTask,
  kmsRenewWorkload,
  kmsMakeEnrolment,
  kmsEnrol,
  kmsOpenForWorkload,
] as const;
