import path from 'node:path';
import { ColonnadeError, type HookFolder } from '@colonnade/contracts';
import type { HookRunnerConfig } from '../config.ts';
import { HOOK_EVENT_NAMES, HOOK_EVENTS, type HookEventName } from '../run/hook-events.ts';
import { listHooks } from '../run/list-hooks.ts';

/** @throws ColonnadeError `bad_request` */
export function eventNamed(name: string): HookEventName {
  const known = HOOK_EVENT_NAMES.find((one) => one === name);
  if (known !== undefined) return known;
  throw new ColonnadeError('bad_request', `there are no hooks of this event: ${name}`, { field: 'event' });
}

/** What would run for each event, in which order, and what is in the folders besides. */
export async function listHookFolders(
  config: Pick<HookRunnerConfig, 'hooksDir' | 'ignoredSuffixes'>,
  event: string | undefined,
): Promise<HookFolder[]> {
  const names = event === undefined ? HOOK_EVENT_NAMES : [eventNamed(event)];
  return await Promise.all(names.map((name) => viewFolder(config, name)));
}

async function viewFolder(
  { hooksDir, ignoredSuffixes }: Pick<HookRunnerConfig, 'hooksDir' | 'ignoredSuffixes'>,
  event: HookEventName,
): Promise<HookFolder> {
  const { when, veto, parameters, timeouts } = HOOK_EVENTS[event];
  const about = {
    event,
    when,
    veto,
    parameters: Object.entries(parameters).map(([name, meaning]) => ({ name, meaning })),
  };
  try {
    const { hooks, ignored } = await listHooks(path.join(hooksDir, event), ignoredSuffixes);
    return {
      ...about,
      hooks: hooks.map(({ name, stated, fault }) => ({
        name,
        warn_ms: Math.ceil(stated.warnMs ?? timeouts.warnMs),
        kill_ms: Math.ceil(stated.killMs ?? timeouts.killMs),
        faults: [...stated.faults],
        ...(fault === undefined ? {} : { fault }),
      })),
      ignored: [...ignored],
    };
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError)) throw thrown;
    return { ...about, hooks: [], ignored: [], fault: thrown.message };
  }
}
