import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';
import { createStateFile, listStateDir, openStateDir, readStateFile } from '../state-dir.ts';
import { type KeyChange, type KeyDecision, type KeyRules, rulesOf, zKeyChange } from './changes.ts';

/** The decisions about one key, as all replicas share them. */
export type ChangeLog = {
  rules(): KeyRules;
  /** Reads what other replicas have decided. Returns whether there is something new. */
  refresh(): Promise<boolean>;
  /** Adds the next one. @returns false when another replica was first: read it and look again */
  append(decision: KeyDecision, atMs: number): Promise<boolean>;
};

/** @throws ColonnadeError `misconfigured`: a broken file, or one that is missing */
export async function openChangeLog(dir: string, name: string): Promise<ChangeLog> {
  openStateDir(dir);
  let changes: readonly KeyChange[] = [];
  let rules = rulesOf(changes);
  const read = async (number: number): Promise<KeyChange> => {
    const file = path.join(dir, fileName(number));
    const change = await readStateFile(file, zKeyChange);
    if (change?.number === number && change.name === name) return change;
    throw new ColonnadeError('misconfigured', `${file} is missing, or is not the change its name says`);
  };
  const log: ChangeLog = {
    rules: () => rules,
    async refresh() {
      const count = listStateDir(dir).length;
      const added: KeyChange[] = [];
      for (let number = changes.length + 1; number <= count; number += 1) added.push(await read(number));
      // Another refresh may have read them meanwhile.
      if (added[0]?.number !== changes.length + 1) return false;
      changes = [...changes, ...added];
      rules = rulesOf(changes);
      return true;
    },
    async append(decision, atMs) {
      const number = changes.length + 1;
      const change = { format: 'colonnade-key-change/1', name, number, at_ms: atMs, ...decision } as const;
      const isFirst = await createStateFile(path.join(dir, fileName(number)), zKeyChange, change);
      await log.refresh();
      return isFirst;
    },
  };
  await log.refresh();
  return log;
}

function fileName(number: number): string {
  return `c${String(number).padStart(6, '0')}.json`;
}
