import { clipText, type HookRun, type hooksRun } from '@colonnade/contracts';
import type { z } from 'zod';
import type { HookResult, RunResult } from './run/run-hooks.ts';
import type { Runner } from './runner.ts';

type Request = z.output<typeof hooksRun.request>;

/** Characters of what a hook wrote that are told to the one who asked. */
const MESSAGE_CHARACTERS = 1024;

/**
 * The endpoint for hooks that may veto. Who asks again while the run goes on gets its answer too: a client that has lost
 * patience must not make hooks run twice at once.
 */
export function createRunAnswerer(
  runner: Runner,
  signal: AbortSignal,
  nextId: () => string,
): (request: Request) => Promise<HookRun> {
  const underWay = new Map<string, Promise<HookRun>>();
  return (request) => {
    const key = `${request.event} ${request.run}`;
    const known = underWay.get(key);
    if (known !== undefined) return known;
    const { event, subject, parameters } = request;
    const minion = minionOf(parameters);
    const planned = { id: `request:${nextId()}`, event, subject, parameters, ...minion };
    const answer = runner
      .run(planned, true, signal)
      .then(answerOf)
      .finally(() => underWay.delete(key));
    underWay.set(key, answer);
    return answer;
  };
}

function minionOf({ RUDDER_NODE_ID: id, RUDDER_NODE_POLICY_SERVER_ID: master }: Request['parameters']) {
  return id === undefined || master === undefined ? {} : { minion: { master, id } };
}

export function answerOf({ status, results, notRun, fault }: RunResult): HookRun {
  return {
    status,
    results: results.map((result) => ({
      hook: result.hook,
      status: result.status,
      reason: result.reason,
      duration_ms: Math.round(result.durationMs),
      message: messageOf(result),
    })),
    not_run: [...notRun],
    fault: fault?.message,
  };
}

function messageOf({ stdout, stderr }: HookResult): string {
  const text = stderr.trim() || stdout.trim();
  return clipText(text.slice(-MESSAGE_CHARACTERS).toWellFormed(), MESSAGE_CHARACTERS);
}
