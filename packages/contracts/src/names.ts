import { z } from 'zod';
import { LIMITS } from './limits.ts';

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/u;
const SEPARATORS = /[:;,]/u;

function utf8Length(text: string): number {
  return Buffer.byteLength(text, 'utf8');
}

/**
 * An identifier that may stand in a pillarenv or an AAD: no `:`, `;`, `,`, no control characters, so that two
 * targets can never share a pillarenv (seed 000, canonical formats).
 */
function identifier(what: string) {
  return z
    .string()
    .min(1, `${what} is empty`)
    .refine((s) => s.isWellFormed(), `${what} holds a lone surrogate`)
    .refine((s) => utf8Length(s) <= LIMITS.idBytes, `${what} is longer than ${LIMITS.idBytes} bytes`)
    .refine((s) => !CONTROL.test(s), `${what} holds a control character`)
    .refine((s) => !SEPARATORS.test(s), `${what} holds one of ":", ";", ","`)
    .refine((s) => s === s.trim(), `${what} begins or ends with white space`);
}

export const zUserSub = identifier('user sub');
export const zCollectionId = identifier('collection id').refine(
  (s) => s !== '.' && s !== '..',
  'collection id is "." or "..", which no URL can carry',
);
export const zTemplateId = identifier('task template id');
/** Of a template that is made: part of URLs, as a minion's id is. What is sealed under older ones still opens. */
export const zNewTemplateId = zTemplateId
  .refine((s) => !/[/\\]/u.test(s), 'task template id holds a slash')
  .refine((s) => s !== '.' && s !== '..', 'task template id is "." or "..", which no URL can carry');
export const zTaskId = identifier('task id');
/** A plain environment such as `base` or `prod`. */
export const zEnvName = identifier('environment name');
/** Salt refuses minion ids with a path separator; so do we. */
export const zMinionId = identifier('minion id')
  .refine((s) => !/[/\\]/u.test(s), 'minion id holds a slash')
  .refine((s) => s !== '.' && s !== '..', 'minion id is "." or "..", which no URL can carry');
/** A logical master. Narrow, since it becomes part of Redis keys and of ACL patterns. */
export const zMasterId = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/u,
    'master id must be 1–128 of A–Z a–z 0–9 . _ - and begin with a letter or digit',
  );

/** Names Salt itself acts on: refused, or only with the permission `pillar:salt-control`. */
const REFUSED_NAMES: ReadonlySet<string> = new Set(['_errors']);
const CONTROL_NAMES: ReadonlySet<string> = new Set([
  'schedule',
  'beacons',
  'mine_functions',
  'mine_interval',
  'minion_blackout',
  'minion_blackout_whitelist',
  'master',
  'proxy',
]);

export const zPillarName = z
  .string()
  .min(1, 'pillar name is empty')
  .refine((s) => s.isWellFormed(), 'pillar name holds a lone surrogate')
  .refine((s) => utf8Length(s) <= LIMITS.nameBytes, `pillar name is longer than ${LIMITS.nameBytes} bytes`)
  .refine((s) => !CONTROL.test(s), 'pillar name holds a control character')
  .refine((s) => !REFUSED_NAMES.has(s), 'pillar name is reserved: Salt reads "_errors" as a failed pillar')
  .refine((s) => s !== 'colonnade', 'pillar name is reserved: "colonnade" is the marker of the Salt module');

/** True for names by which a pillar changes how Salt itself behaves (scheduler, beacons, mine, master options). */
export function isSaltControlName(name: string): boolean {
  return CONTROL_NAMES.has(name) || name.startsWith('master_');
}

export const TGT_TYPES = ['root', 'collection', 'minion', 'task_tpl', 'task'] as const;
export const zTgtType = z.enum(TGT_TYPES);
/** Seed 000, PillarTgtType. */
export type TgtType = z.infer<typeof zTgtType>;
