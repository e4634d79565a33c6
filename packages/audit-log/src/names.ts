import { readdir } from 'node:fs/promises';
import path from 'node:path';

const STAMP = '\\d{4}-\\d{2}-\\d{2}T\\d{2}-\\d{2}-\\d{2}\\.\\d{3}';

/** Names around one log: `audit.log`, its journal, and `audit-2026-01-31T12-00-00.000.log` as lumberjack names rotated files. */
export function namesOf(logPath: string) {
  const dir = path.dirname(logPath);
  const extension = path.extname(logPath);
  const stem = path.basename(logPath, extension);
  const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/gu, '\\$&');
  const rotated = new RegExp(`^${escaped(stem)}-(${STAMP})${escaped(extension)}(\\.gz)?(\\.chain)?$`, 'u');
  const journalOf = (file: string) => `${file}.chain`;
  return {
    dir,
    journal: journalOf(logPath),
    lock: `${logPath}.lock`,
    journalOf,
    rotatedAt: (stamp: string) => path.join(dir, `${stem}-${stamp}${extension}`),
    /** Stamps of rotated files and journals, oldest first, with what is there of each. */
    async list(): Promise<Rotated[]> {
      const byStamp = new Map<string, Rotated>();
      for (const name of await readdir(dir)) {
        const [, stamp, gz, chain] = rotated.exec(name) ?? [];
        if (stamp === undefined) continue;
        const one = byStamp.get(stamp) ?? { stamp, log: undefined, gz: undefined, journal: undefined };
        const kind = chain !== undefined ? 'journal' : gz !== undefined ? 'gz' : 'log';
        byStamp.set(stamp, { ...one, [kind]: path.join(dir, name) });
      }
      return [...byStamp.values()].sort((a, b) => (a.stamp < b.stamp ? -1 : 1));
    },
  };
}

export type FileNames = ReturnType<typeof namesOf>;
export type Rotated = {
  stamp: string;
  log: string | undefined;
  gz: string | undefined;
  journal: string | undefined;
};

/** A stamp that no rotated file has yet, and later than all of them, so that their order is the order of their names. */
export function nextStamp(existing: readonly Rotated[], nowMs: number): string {
  const render = (ms: number) => new Date(ms).toISOString().replaceAll(':', '-').replace('Z', '');
  const last = existing.at(-1)?.stamp;
  const now = render(nowMs);
  if (last === undefined || now > last) return now;
  const [day = '', time = ''] = last.split('T');
  return render(Date.parse(`${day}T${time.replaceAll('-', ':')}Z`) + 1);
}
