import type { TgtType } from './names.ts';

/** tgt_id of every root pillar; the seed leaves it open, one constant keeps the unique index meaningful. */
export const ROOT_TGT_ID = 'root';

/** What a pillar is bound to, after the server resolved it (seed 000, `_resolve_target`). */
export type ResolvedTarget = { tgtType: TgtType; tgtId: string; pillarenv: string };

export const rootTarget: ResolvedTarget = { tgtType: 'root', tgtId: ROOT_TGT_ID, pillarenv: 'base' };

/** Seed 000: `minion_id:{minion_id};master:{master}`. */
export function minionEnv(minionId: string, master: string): string {
  return `minion_id:${minionId};master:${master}`;
}

/** Seed 000: `collection:{id};user:{sub}`, or `collection:{id}` without a user. */
export function collectionEnv(collectionId: string, userSub?: string): string {
  return userSub === undefined ? `collection:${collectionId}` : `collection:${collectionId};user:${userSub}`;
}

/** Seed 000: `task:{task_id}`. */
export function taskEnv(taskId: string): string {
  return `task:${taskId}`;
}

/** Seed 000: `task_tpl:{id};user:{sub}`. */
export function taskTemplateEnv(templateId: string, userSub: string): string {
  return `task_tpl:${templateId};user:${userSub}`;
}

export function minionTarget(minionId: string, master: string): ResolvedTarget {
  return { tgtType: 'minion', tgtId: minionId, pillarenv: minionEnv(minionId, master) };
}

export function collectionTarget(collectionId: string, owner: string): ResolvedTarget {
  return { tgtType: 'collection', tgtId: collectionId, pillarenv: collectionEnv(collectionId, owner) };
}

export function taskTarget(taskId: string): ResolvedTarget {
  return { tgtType: 'task', tgtId: taskId, pillarenv: taskEnv(taskId) };
}

export function taskTemplateTarget(templateId: string, userSub: string): ResolvedTarget {
  return { tgtType: 'task_tpl', tgtId: templateId, pillarenv: taskTemplateEnv(templateId, userSub) };
}

export type ParsedEnv =
  | { kind: 'collection'; collectionId: string; userSub: string | undefined }
  | { kind: 'task'; taskId: string }
  | { kind: 'minion'; minionId: string; master: string }
  | { kind: 'plain'; name: string }
  | { kind: 'other' };

/**
 * Reads one element of a pillarenv. `plain` has no separator at all; what has one but none of the canonical forms
 * (seed 000) is `other`.
 */
export function parseEnv(env: string): ParsedEnv {
  const collection = /^collection:([^:;,]+)(?:;user:([^:;,]+))?$/u.exec(env);
  if (collection?.[1] !== undefined) {
    return { kind: 'collection', collectionId: collection[1], userSub: collection[2] };
  }
  const task = /^task:([^:;,]+)$/u.exec(env);
  if (task?.[1] !== undefined) return { kind: 'task', taskId: task[1] };
  const minion = /^minion_id:([^:;,]+);master:([^:;,]+)$/u.exec(env);
  if (minion?.[1] !== undefined && minion[2] !== undefined) {
    return { kind: 'minion', minionId: minion[1], master: minion[2] };
  }
  if (env.length > 0 && !/[:;,]/u.test(env)) return { kind: 'plain', name: env };
  return { kind: 'other' };
}

/** What the AAD of a sealed pillar is made from. */
export type PillarContext = { tgtType: TgtType; tgtId: string; pillarenv: string; name: string };

/** Data AAD, seed 000: `{tgt_type}:{tgt_id}:{pillarenv}:{name}`. */
export function pillarAad(context: PillarContext): string {
  return `${context.tgtType}:${context.tgtId}:${context.pillarenv}:${context.name}`;
}

/** Wrap AAD of the DEK, seed 000: `pillars-dek:{kid}:{data_aad}`. */
export function dekWrapAad(kid: string, dataAad: string): string {
  return `pillars-dek:${kid}:${dataAad}`;
}
