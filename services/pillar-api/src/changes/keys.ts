import { parseEnv, ROOT_TGT_ID } from '@colonnade/contracts';
import type { ChangeKey } from '@colonnade/estate-store';
import type { Target } from '../auth/scope.ts';

/**
 * What a change key is about, for the question who may hear of it. `tree`: that collections were made, moved or
 * renamed; it names none, so every reader is told. `estate`: for readers of the whole estate only.
 */
export function subjectOfKey(key: ChangeKey): Target | 'tree' | 'estate' {
  if (key === 'collections') return 'tree';
  const [kind, rest] = splitOnce(key, ':');
  if (kind === 'minion') return { tgtType: 'minion', tgtId: splitOnce(rest, '/')[1] };
  if (kind === 'task') return { tgtType: 'task', tgtId: rest };
  if (kind !== 'scope') return 'estate';
  const env = parseEnv(rest);
  switch (env.kind) {
    case 'collection':
      return { tgtType: 'collection', tgtId: env.collectionId };
    case 'minion':
      return { tgtType: 'minion', tgtId: env.minionId };
    case 'task':
      return { tgtType: 'task', tgtId: env.taskId };
    case 'plain':
      return { tgtType: 'root', tgtId: ROOT_TGT_ID };
    case 'other':
      return 'estate';
  }
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
