import {
  ColonnadeError,
  collectionEnv,
  minionEnv,
  type OpenContext,
  parseEnv,
  pillarAad,
  ROOT_TGT_ID,
  rootTarget,
  type TgtType,
  taskEnv,
  taskTemplateEnv,
  zCollectionId,
  zMasterId,
  zMinionId,
  zPillarName,
  zTaskId,
  zTemplateId,
  zUserSub,
} from '@colonnade/contracts';

/** The data AAD of a context (seed 000). Only for contexts that one of the checks below has let through. */
export function aadOf(context: OpenContext): string {
  return pillarAad({
    tgtType: context.tgt_type,
    tgtId: context.tgt_id,
    pillarenv: context.pillarenv,
    name: context.name,
  });
}

/**
 * Lets through only what pillar-api may seal: the canonical form of each target, by our rules for names, so that no two
 * targets share an AAD.
 * @throws ColonnadeError `bad_request`
 */
export function checkSealContext(context: OpenContext): void {
  const name = zPillarName.safeParse(context.name);
  if (!name.success)
    throw refuse(name.error.issues[0]?.message ?? 'pillar name is not allowed', 'context.name');
  if (!isCanonical(context)) {
    throw refuse(`tgt_type ${context.tgt_type}, tgt_id and pillarenv do not belong together`, 'context');
  }
}

/**
 * Lets through what a record may have been sealed under. One from before our rules may carry another form of tgt_id,
 * but the kind of its pillarenv agrees with its tgt_type.
 * @throws ColonnadeError `bad_request`
 */
export function checkOpenContext(context: OpenContext): void {
  if (envKind(context.pillarenv) !== context.tgt_type) {
    throw refuse(`pillarenv is not one of tgt_type ${context.tgt_type}`, 'context.pillarenv');
  }
}

/**
 * Lets through only scopes that can belong to this minion of this master: plain environments, the
 * minion's own, collections and tasks. Which collections, tasks and environments are this minion's is the merger's to
 * say: this service reads no estate. A task's scope is that of the very task its tgt_id names. Defaults of task templates
 * are never part of a merge.
 * @throws ColonnadeError `kms_refused`
 */
export function checkMergeScope(context: OpenContext, master: string, minionId: string): void {
  // The parts of an AAD are joined with ":", so a tgt_id that holds one could carry a foreign minion's scope inside.
  if (context.tgt_id.includes(':'))
    throw new ColonnadeError('kms_refused', 'tgt_id holds ":"', { field: 'context' });
  const env = parseEnv(context.pillarenv);
  const allowed =
    (context.tgt_type === 'root' && env.kind === 'plain') ||
    (context.tgt_type === 'collection' && env.kind === 'collection') ||
    (context.tgt_type === 'task' && env.kind === 'task' && env.taskId === context.tgt_id) ||
    (context.tgt_type === 'minion' && context.pillarenv === minionEnv(minionId, master));
  if (!allowed) {
    throw new ColonnadeError('kms_refused', 'the scope cannot belong to this minion of this master', {
      field: 'context',
    });
  }
}

function isCanonical({ tgt_type, tgt_id, pillarenv }: OpenContext): boolean {
  const env = parseEnv(pillarenv);
  switch (tgt_type) {
    case 'root':
      return tgt_id === ROOT_TGT_ID && pillarenv === rootTarget.pillarenv;
    case 'minion':
      return (
        env.kind === 'minion' &&
        zMinionId.safeParse(tgt_id).success &&
        zMasterId.safeParse(env.master).success &&
        pillarenv === minionEnv(tgt_id, env.master)
      );
    case 'collection':
      return (
        env.kind === 'collection' &&
        zCollectionId.safeParse(tgt_id).success &&
        zUserSub.safeParse(env.userSub).success &&
        pillarenv === collectionEnv(tgt_id, env.userSub)
      );
    case 'task':
      return zTaskId.safeParse(tgt_id).success && pillarenv === taskEnv(tgt_id);
    case 'task_tpl': {
      const userSub = pillarenv.slice(taskTemplateEnv(tgt_id, '').length);
      return (
        zTemplateId.safeParse(tgt_id).success &&
        zUserSub.safeParse(userSub).success &&
        pillarenv === taskTemplateEnv(tgt_id, userSub)
      );
    }
  }
}

/** Which target's pillarenv this is, by its form alone (seed 000, canonical formats; old ids may hold anything). */
function envKind(pillarenv: string): TgtType | undefined {
  if (/^collection:./u.test(pillarenv)) return 'collection';
  if (/^task:./u.test(pillarenv)) return 'task';
  if (/^task_tpl:./u.test(pillarenv)) return 'task_tpl';
  if (/^minion_id:.*;master:./u.test(pillarenv)) return 'minion';
  return parseEnv(pillarenv).kind === 'plain' ? 'root' : undefined;
}

function refuse(message: string, field: string): ColonnadeError {
  return new ColonnadeError('bad_request', message, { field });
}
