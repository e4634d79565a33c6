import type { Journal } from '../rules/node-facts.ts';
import type { Action } from '../rules/node-machine.ts';
import type { OidcSpec } from '../spec.ts';
import type { NodePhase } from '../status.ts';
import type { Access, NodeSession } from './session.ts';

/** Actions that change something. */
export type Change = Exclude<Action, { do: 'nothing' | 'wait' | 'fail' }>;

/** What is brought to a node. */
export type Payload = { bundle: string; key: string | undefined };

/** Beyond every wait of ours: then the node helps itself. */
const RESTORE_SLACK_MS = 60_000;

/** How long a manifest may be parked before the node brings it back by itself, milliseconds. */
export function restoreMs({ restart }: Pick<OidcSpec, 'restart'>): number {
  return (restart.minimumWaitSeconds + restart.stopTimeoutSeconds) * 1000 + RESTORE_SLACK_MS;
}

/** @throws ColonnadeError as the session's `run`; what was done shows the next look */
export async function perform(
  session: NodeSession,
  access: Access,
  action: Change,
  { payload, oidc }: { payload: Payload; oidc: OidcSpec },
): Promise<void> {
  const deadline = String(restoreMs(oidc));
  switch (action.do) {
    case 'begin':
      return session.run(access, { verb: 'begin', input: `${line(action.journal)}${payload.bundle}` });
    case 'write':
      return session.run(access, { verb: action.which === 'target' ? 'write' : 'write-previous' });
    case 'write-key':
      return session.run(access, { verb: 'write-key', input: payload.key ?? '' });
    case 'arm':
      return session.run(access, { verb: 'arm', args: [deadline] });
    case 'park':
      return session.run(access, { verb: 'park', args: [deadline], input: line(action.journal) });
    case 'roll-back':
      return session.run(access, { verb: 'note', input: line(action.journal) });
    default:
      return session.run(access, { verb: action.do });
  }
}

function line(journal: Journal): string {
  return `${JSON.stringify(journal)}\n`;
}

/** What a status calls a node that is about to do this. */
export function phaseOf(action: Action, journal: Journal | undefined): NodePhase {
  if (action.do === 'nothing') return 'Done';
  if (action.do === 'fail') return 'Failed';
  if (action.do === 'finish') return action.failure === undefined ? 'Done' : 'RolledBack';
  if (action.do === 'roll-back' || journal?.phase === 'back') return 'RollingBack';
  if (action.do === 'wait') return action.phase;
  if (action.do === 'park') return 'Stopping';
  return action.do === 'unpark' || action.do === 'discard-parked' ? 'Starting' : 'Writing';
}
