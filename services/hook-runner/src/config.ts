import { auditPolicySettings } from '@colonnade/audit';
import {
  busSettings,
  type ConfigOf,
  logSettings,
  opsSettings,
  type Parse,
  readConfig,
  setting,
  zBytesCount,
  zCount,
  zMs,
  zPath,
  zText,
} from '@colonnade/service-kit';
import { isVariableName } from './run/environment.ts';
import { DEFAULT_IGNORED_SUFFIXES } from './run/ignored-suffixes.ts';

const zList: Parse<readonly string[]> = (text) =>
  zText(text)
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');

const zVariables: Parse<readonly string[]> = (text) => {
  const names = zList(text);
  if (!names.every(isVariableName)) throw new Error('must be names of variables, separated by commas');
  return names;
};

const zConcurrency: Parse<number> = (text) => {
  const count = zCount(text);
  if (count < 1 || count > 64) throw new Error('must be from 1 to 64');
  return count;
};

const zOutput: Parse<number> = (text) => {
  const bytes = zBytesCount(text);
  if (bytes > 1024 * 1024) throw new Error('must be at most 1048576');
  return bytes;
};

/** EVENTS delivers an event again for as long as it keeps it; until then what ran must be known. */
const EVENTS_KEEP_DAYS = 7;
const zDays: Parse<number> = (text) => {
  const days = zCount(text);
  if (days <= EVENTS_KEEP_DAYS || days > 3660) throw new Error('must be from 8 to 3660');
  return days;
};

export const hookRunnerSettings = {
  hooksDir: setting('HOOKS_DIR', zPath, {
    help: 'folder with a folder of hooks for each event; those that are missing are made, with README and example',
  }),
  stateDir: setting('HOOKS_STATE_DIR', zPath, {
    help: 'history, what has run, policies; one runner works on it, others on the same folder stand by',
  }),
  ignoredSuffixes: setting('HOOKS_IGNORE_SUFFIXES', zList, {
    help: 'files that end so are no hooks, whatever the case; separated by commas',
    default: DEFAULT_IGNORED_SUFFIXES.join(','),
  }),
  allowedEnv: setting('HOOKS_ENV', zVariables, {
    help: "variables of the runner's own environment that hooks get too, separated by commas",
    default: 'TZ',
  }),
  graceMs: setting('HOOKS_GRACE_MS', zMs, {
    help: 'between TERM and KILL for a hook that takes too long',
    default: '5000',
  }),
  outputBytes: setting('HOOKS_OUTPUT_BYTES', zOutput, {
    help: 'kept and logged of each stream of a hook; the rest is only counted',
    default: '65536',
  }),
  concurrency: setting('HOOKS_CONCURRENCY', zConcurrency, {
    help: 'events whose hooks run at once, and minions of a generation whose hooks do; events of one subject keep their order',
    default: '4',
  }),
  generationDebounceMs: setting('GENERATION_DEBOUNCE_MS', zMs, {
    help: 'how long changes are waited for that may share a generation',
    default: '1000',
  }),
  generationHooksMs: setting('GENERATION_HOOKS_MS', zMs, {
    help: 'time for all `policy-generation-node-ready` hooks of one generation; minions after that keep their policies',
    default: '600000',
  }),
  refreshKeepMs: setting('REFRESH_KEEP_MS', zMs, {
    help: 'what a hook has put into the queue for Salt masters, and could not be told them for so long, is dropped',
    default: '3600000',
  }),
  historyDays: setting('HOOKS_HISTORY_DAYS', zDays, {
    help: 'how long runs are kept in the history',
    default: '30',
  }),
  ...auditPolicySettings,
  ...busSettings('hook-runner'),
  ...opsSettings(8086),
  ...logSettings,
};

export type HookRunnerConfig = ConfigOf<typeof hookRunnerSettings>;

/** @throws ColonnadeError `misconfigured` naming every fault */
export function readHookRunnerConfig(env: Readonly<Record<string, string | undefined>>): HookRunnerConfig {
  return readConfig(hookRunnerSettings, env);
}
