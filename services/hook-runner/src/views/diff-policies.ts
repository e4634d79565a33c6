import { stat } from 'node:fs/promises';
import path from 'node:path';
import { ColonnadeError, LIMITS, type PolicyDiff } from '@colonnade/contracts';
import { canonicalBytes, type Value, valuesEqual } from '@colonnade/value';
import { contentOf, sealedNames } from '../generation/content.ts';
import { POLICY_FILE, readPolicy } from '../generation/folders.ts';
import { policyFolders } from '../policy-folders.ts';

type Pillar = { readonly [name: string]: Value };
type Policies = { at: string; pillar: Pillar };
type PolicyChange = PolicyDiff['changes'][number];

/**
 * What differs between the policies of a minion in force and those before them, name by name. Of a secret only that it does,
 * by its ciphertext: a rewrap is no change.
 * @throws ColonnadeError `not_found`: it has no policies
 */
export async function diffPolicies(stateDir: string, master: string, minion: string): Promise<PolicyDiff> {
  const folders = policyFolders(stateDir, master, minion);
  const [now, before] = await Promise.all([readPolicies(folders.current), readPolicies(folders.archive)]);
  if (now === undefined) throw new ColonnadeError('not_found', 'there are no policies of this minion');
  const changes = compare(before?.pillar ?? {}, now.pillar);
  const bytes = changes.reduce((sum, change) => sum + sizeOf(change), 0);
  const tooMuch = bytes > LIMITS.diffBytes;
  return {
    master,
    minion_id: minion,
    at: now.at,
    before_at: before?.at ?? null,
    changes: tooMuch ? changes.map(({ before: _, after: __, ...rest }) => rest) : changes,
    values_left_out: tooMuch,
  };
}

async function readPolicies(folder: string): Promise<Policies | undefined> {
  const pillar = await readPolicy(folder);
  if (pillar === undefined) return undefined;
  const { mtime } = await stat(path.join(folder, POLICY_FILE));
  return { at: mtime.toISOString(), pillar };
}

function compare(before: Pillar, after: Pillar): PolicyChange[] {
  const secrets = new Set([...sealedNames(before), ...sealedNames(after)]);
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const [old, fresh] = [contentOf(before), contentOf(after)];
  return [...names].sort().flatMap((name): PolicyChange[] => {
    const kind = kindOf(old, fresh, name);
    if (kind === undefined) return [];
    const is_secret = secrets.has(name);
    const show = (which: 'before' | 'after', pillar: Pillar) => {
      const value = pillar[name];
      // Of a pillar that became a secret, or ceased to be one, the plain value is none to show either.
      return is_secret || value === undefined ? {} : { [which]: value };
    };
    return [{ name, kind, is_secret, ...show('before', before), ...show('after', after) }];
  });
}

function kindOf(before: Pillar, after: Pillar, name: string): PolicyChange['kind'] | undefined {
  const [old, fresh] = [before[name], after[name]];
  if (old === undefined) return 'added';
  if (fresh === undefined) return 'removed';
  return valuesEqual(old, fresh) ? undefined : 'changed';
}

function sizeOf({ name, before, after }: PolicyChange): number {
  const values = [before, after].filter((value) => value !== undefined);
  return values.reduce<number>((sum, value) => sum + canonicalBytes(value).length, name.length + 64);
}
