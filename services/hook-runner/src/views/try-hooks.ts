import path from 'node:path';
import { ColonnadeError, type hooksTry } from '@colonnade/contracts';
import type { z } from 'zod';
import { answerOf } from '../answer-run.ts';
import type { HookRunnerConfig } from '../config.ts';
import { infoFiles } from '../generation/info-files.ts';
import { policyFolders } from '../policy-folders.ts';
import { refreshFolder } from '../refresh-queue.ts';
import { buildEnvironment } from '../run/environment.ts';
import { HOOK_EVENTS, type HookEventName } from '../run/hook-events.ts';
import { listHooks } from '../run/list-hooks.ts';
import type { Runner } from '../runner.ts';
import { eventNamed } from './list-folders.ts';

type Request = z.output<typeof hooksTry.request>;
type Answer = z.output<typeof hooksTry.response>;

/** Instead of a variable that the runner's own environment gives: it may be anything. */
const HIDDEN = '*******';

/**
 * Runs the hooks of an event by hand: what they are told is what the caller says, and nothing of what the event means
 * happens, but what the hooks themselves do. A dry run only tells what would run.
 * @throws ColonnadeError `bad_request`, `unavailable`
 */
export async function tryHooks(
  { event: name, parameters: given = {}, dry_run = false, by }: Request,
  config: HookRunnerConfig,
  deps: {
    runner: Pick<Runner, 'run'>;
    env: Readonly<Record<string, string | undefined>>;
    nextId: () => string;
  },
  signal: AbortSignal,
): Promise<Answer> {
  const event = eventNamed(name);
  const parameters = completeParameters(event, given, config);
  const folder = path.join(config.hooksDir, event);
  const allowed = Object.fromEntries(config.allowedEnv.map((one) => [one, deps.env[one] && HIDDEN]));
  const environment = buildEnvironment(parameters, { ...deps.env, ...allowed }, config.allowedEnv);
  const answer = { event, folder, environment };
  if (dry_run) {
    const { hooks } = await listHooks(folder, config.ignoredSuffixes);
    const not_run = hooks.map((hook) => hook.name);
    return { ...answer, run: null, status: null, results: [], not_run };
  }
  const id = `hand:${deps.nextId()}`;
  const subject = `/hooks/${event} by ${by}`;
  const result = await deps.runner.run({ id, event, subject, parameters }, HOOK_EVENTS[event].veto, signal);
  return { ...answer, run: id, ...answerOf(result) };
}

function completeParameters(
  event: HookEventName,
  given: Readonly<Record<string, string>>,
  config: HookRunnerConfig,
): Record<string, string> {
  const wanted = Object.keys(HOOK_EVENTS[event].parameters);
  const strange = Object.keys(given).filter((one) => !wanted.includes(one));
  if (strange.length > 0) throw fault(`not parameters of ${event}: ${strange.join(', ')}`);
  const all = { ...knownParameters(event, given, config), ...given };
  const missing = wanted.filter((one) => !Object.hasOwn(all, one));
  if (missing.length > 0) throw fault(`missing for ${event}: ${missing.join(', ')}`);
  return Object.fromEntries(wanted.map((one) => [one, all[one] ?? '']));
}

/** Places that nobody else can know, with what is there now. There are no next policies: those in force stand for them. */
function knownParameters(
  event: HookEventName,
  { RUDDER_NODE_ID: id, RUDDER_NODE_POLICY_SERVER_ID: master }: Readonly<Record<string, string>>,
  { stateDir }: HookRunnerConfig,
): Record<string, string> {
  const info = infoFiles(stateDir);
  const known: Record<string, string> = {
    COLONNADE_REFRESH_DIR: refreshFolder(stateDir),
    COLONNADE_NODES_PATH: info.minions,
    RUDDER_NODE_IDS_PATH: info.nodeIds,
    RUDDER_ERROR_MESSAGE_PATH: info.failure,
    COLONNADE_ERROR_MESSAGE: '',
  };
  if (id !== undefined && master !== undefined && isPlain(id) && isPlain(master)) {
    const { current, next, archive } = policyFolders(stateDir, master, id);
    known.RUDDER_POLICIES_DIRECTORY_CURRENT = current;
    known.RUDDER_POLICIES_DIRECTORY_NEW = event === 'policy-generation-node-ready' ? current : next;
    known.RUDDER_POLICIES_DIRECTORY_ARCHIVE = archive;
  }
  const own = HOOK_EVENTS[event].parameters;
  return Object.fromEntries(Object.entries(known).filter(([name]) => Object.hasOwn(own, name)));
}

/** A name, and no way to another folder. */
function isPlain(text: string): boolean {
  return text !== '' && text !== '.' && text !== '..' && !/[/\\]/u.test(text);
}

function fault(why: string): ColonnadeError {
  return new ColonnadeError('bad_request', why, { field: 'parameters' });
}
