import { adoptCommand } from './commands/adopt.ts';
import { auditDead } from './commands/audit/dead.ts';
import { auditFind } from './commands/audit/find.ts';
import { auditReplay } from './commands/audit/replay.ts';
import { auditTail } from './commands/audit/tail.ts';
import { auditVerify } from './commands/audit/verify.ts';
import { busCreds } from './commands/bus/creds.ts';
import { changes } from './commands/changes.ts';
import { collectionCreate } from './commands/collection/create.ts';
import { collectionDelete } from './commands/collection/delete.ts';
import { collectionGet } from './commands/collection/get.ts';
import { collectionList } from './commands/collection/list.ts';
import { collectionRuleDelete } from './commands/collection/rule-delete.ts';
import { collectionRuleSet } from './commands/collection/rule-set.ts';
import { collectionSet } from './commands/collection/set.ts';
import { completion } from './commands/completion.ts';
import { diff } from './commands/diff.ts';
import { eventsDead } from './commands/events/dead.ts';
import { explain } from './commands/explain.ts';
import { exportCommand } from './commands/export.ts';
import { generationGet } from './commands/generation/get.ts';
import { generationList } from './commands/generation/list.ts';
import { generationRun } from './commands/generation/run.ts';
import { history } from './commands/history.ts';
import { hooksHistory } from './commands/hooks/history.ts';
import { hooksList } from './commands/hooks/list.ts';
import { hooksRun } from './commands/hooks/run.ts';
import { hooksTest } from './commands/hooks/test.ts';
import { importCommand } from './commands/import.ts';
import { inventoryDelete } from './commands/inventory/delete.ts';
import { inventoryGet } from './commands/inventory/get.ts';
import { inventoryList } from './commands/inventory/list.ts';
import { inventorySend } from './commands/inventory/send.ts';
import { keyDestroy } from './commands/key/destroy.ts';
import { keyList } from './commands/key/list.ts';
import { keyMinVersion } from './commands/key/min-version.ts';
import { keyRewrap } from './commands/key/rewrap.ts';
import { keyRotate } from './commands/key/rotate.ts';
import { keyUndestroy } from './commands/key/undestroy.ts';
import { limits } from './commands/limits.ts';
import { login } from './commands/login.ts';
import { logout } from './commands/logout.ts';
import { masterCreate } from './commands/master/create.ts';
import { masterDelete } from './commands/master/delete.ts';
import { masterEnrol } from './commands/master/enrol.ts';
import { masterGet } from './commands/master/get.ts';
import { masterList } from './commands/master/list.ts';
import { masterSet } from './commands/master/set.ts';
import { masterTokenCreate } from './commands/master/token-create.ts';
import { masterTokenDelete } from './commands/master/token-delete.ts';
import { minionDelete } from './commands/minion/delete.ts';
import { minionDiff } from './commands/minion/diff.ts';
import { minionGet } from './commands/minion/get.ts';
import { minionList } from './commands/minion/list.ts';
import { minionMove } from './commands/minion/move.ts';
import { minionSet } from './commands/minion/set.ts';
import { pillarCreate } from './commands/pillar/create.ts';
import { pillarDelete } from './commands/pillar/delete.ts';
import { pillarEdit } from './commands/pillar/edit.ts';
import { pillarForTarget } from './commands/pillar/for-target.ts';
import { pillarGet } from './commands/pillar/get.ts';
import { pillarList } from './commands/pillar/list.ts';
import { pillarMove } from './commands/pillar/move.ts';
import { pillarPurge } from './commands/pillar/purge.ts';
import { pillarPurgeHistory } from './commands/pillar/purge-history.ts';
import { pillarReach } from './commands/pillar/reach.ts';
import { pillarRename } from './commands/pillar/rename.ts';
import { pillarReplace } from './commands/pillar/replace.ts';
import { pillarRestore } from './commands/pillar/restore.ts';
import { pillarReveal } from './commands/pillar/reveal.ts';
import { pillarSeal } from './commands/pillar/seal.ts';
import { pillarSearch } from './commands/pillar/search.ts';
import { pillarSet } from './commands/pillar/set.ts';
import { pillarUnseal } from './commands/pillar/unseal.ts';
import { profileDelete } from './commands/profile/delete.ts';
import { profileList } from './commands/profile/list.ts';
import { profileUse } from './commands/profile/use.ts';
import { retentionRun } from './commands/retention/run.ts';
import { retentionShow } from './commands/retention/show.ts';
import { revocationCreate } from './commands/revocation/create.ts';
import { revocationDelete } from './commands/revocation/delete.ts';
import { revocationList } from './commands/revocation/list.ts';
import { scopeRestore } from './commands/scope/restore.ts';
import { serviceCreate } from './commands/service/create.ts';
import { serviceDelete } from './commands/service/delete.ts';
import { serviceEnrol } from './commands/service/enrol.ts';
import { serviceGet } from './commands/service/get.ts';
import { serviceList } from './commands/service/list.ts';
import { serviceSet } from './commands/service/set.ts';
import { serviceUnenrol } from './commands/service/unenrol.ts';
import { status } from './commands/status.ts';
import { storeCopy } from './commands/store/copy.ts';
import { taskCreate } from './commands/task/create.ts';
import { taskDelete } from './commands/task/delete.ts';
import { taskGet } from './commands/task/get.ts';
import { taskList } from './commands/task/list.ts';
import { taskState } from './commands/task/state.ts';
import { taskToken } from './commands/task/token.ts';
import { templateCreate } from './commands/template/create.ts';
import { templateDefaults } from './commands/template/defaults.ts';
import { templateDelete } from './commands/template/delete.ts';
import { templateGet } from './commands/template/get.ts';
import { templateList } from './commands/template/list.ts';
import { templateSet } from './commands/template/set.ts';
import { tlsPlanCommand } from './commands/tls/plan.ts';
import { tlsStatusCommand } from './commands/tls/status.ts';
import { tokenCreate } from './commands/token/create.ts';
import { tokenDelete } from './commands/token/delete.ts';
import { tokenList } from './commands/token/list.ts';
import { whoami } from './commands/whoami.ts';
import type { Command } from './table/command.ts';

/** Every command there is, in the order of their words; help, completion, README and tests are made from this list. */
export const COMMANDS: readonly Command[] = [
  adoptCommand,
  auditFind,
  auditReplay,
  auditTail,
  auditVerify,
  auditDead,
  busCreds,
  changes,
  collectionCreate,
  collectionDelete,
  collectionGet,
  collectionList,
  collectionRuleDelete,
  collectionRuleSet,
  collectionSet,
  completion,
  diff,
  eventsDead,
  explain,
  exportCommand,
  generationGet,
  generationList,
  generationRun,
  history,
  hooksHistory,
  hooksList,
  hooksRun,
  hooksTest,
  importCommand,
  inventoryDelete,
  inventoryGet,
  inventoryList,
  inventorySend,
  keyList,
  keyRotate,
  keyRewrap,
  keyMinVersion,
  keyDestroy,
  keyUndestroy,
  limits,
  login,
  logout,
  masterCreate,
  masterDelete,
  masterEnrol,
  masterGet,
  masterList,
  masterSet,
  masterTokenCreate,
  masterTokenDelete,
  minionDelete,
  minionDiff,
  minionGet,
  minionList,
  minionMove,
  minionSet,
  pillarCreate,
  pillarDelete,
  pillarEdit,
  pillarForTarget,
  pillarGet,
  pillarList,
  pillarMove,
  pillarPurge,
  pillarPurgeHistory,
  pillarReach,
  pillarRename,
  pillarReplace,
  pillarRestore,
  pillarReveal,
  pillarSeal,
  pillarSearch,
  pillarSet,
  pillarUnseal,
  profileDelete,
  profileList,
  profileUse,
  retentionRun,
  retentionShow,
  revocationCreate,
  revocationDelete,
  revocationList,
  scopeRestore,
  serviceCreate,
  serviceDelete,
  serviceEnrol,
  serviceGet,
  serviceList,
  serviceSet,
  serviceUnenrol,
  status,
  storeCopy,
  taskCreate,
  taskDelete,
  taskGet,
  taskList,
  taskState,
  taskToken,
  templateCreate,
  templateDefaults,
  templateDelete,
  templateGet,
  templateList,
  templateSet,
  tlsPlanCommand,
  tlsStatusCommand,
  tokenCreate,
  tokenDelete,
  tokenList,
  whoami,
];
