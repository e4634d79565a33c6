import { createHash } from 'node:crypto';
import { ColonnadeError, type ImportReport } from '@colonnade/contracts';
import { canonicalBytes, canonicalText, type Value } from '@colonnade/value';
import { fingerprintOf, type Kind, type Planned } from './plan.ts';

const DIFF_ROWS = 500;
const DIFF_BYTES = 1024 * 1024;
const PROBLEMS = 100;
const PLURAL = {
  collection: 'collections',
  master: 'masters',
  minion: 'minions',
  inventory: 'inventories',
  template: 'templates',
  task: 'tasks',
  service: 'services',
  pillar: 'pillars',
} as const;

/** Adds up what an import does, in bounded memory. */
export type Reporting = {
  add(line: number, planned: Planned): void;
  refuse(line: number, error: ColonnadeError): void;
  readonly refused: number;
  /** Over all records and what they met, so that a plan can be told from any other. */
  confirm(): string;
  report(more: Pick<ImportReport, 'dry_run' | 'clock'>): ImportReport;
};

export function createReporting(replaceSecrets: boolean): Reporting {
  const hash = createHash('sha256').update(String(replaceSecrets));
  const none = () => ({ created: 0, updated: 0, unchanged: 0 });
  const counts = {
    ...{ collections: none(), masters: none(), minions: none(), inventories: none() },
    ...{ templates: none(), tasks: none(), services: none(), pillars: none() },
  };
  const diff: ImportReport['diff'] = [];
  const problems: ImportReport['problems'] = [];
  let diffBytes = 0;
  let more = false;
  let refused = 0;
  let confirm: string | undefined;
  const show = (line: number, planned: Planned) => {
    const { kind, key, isSecret, before, after } = planned;
    const values = { ...(before === undefined ? {} : { before }), ...(after === undefined ? {} : { after }) };
    diffBytes += sizeOf(before) + sizeOf(after);
    if (diff.length >= DIFF_ROWS || diffBytes > DIFF_BYTES) {
      more = true;
      return;
    }
    const secrecy = isSecret === undefined ? {} : { is_secret: isSecret };
    diff.push({ line, kind, op: isCreate(planned) ? 'create' : 'update', key, ...secrecy, ...values });
  };
  return {
    add(line, planned) {
      hash.update(`${canonicalText(fingerprintOf(planned))}\n`);
      const count = counts[PLURAL[planned.kind satisfies Kind]];
      if (planned.change === undefined) count.unchanged += 1;
      else {
        count[isCreate(planned) ? 'created' : 'updated'] += 1;
        show(line, planned);
      }
    },
    refuse(line, { code, field, message }) {
      refused += 1;
      if (problems.length >= PROBLEMS) return;
      problems.push({ line, code, detail: message, ...(field === undefined ? {} : { field }) });
    },
    get refused() {
      return refused;
    },
    confirm() {
      confirm ??= hash.digest('hex');
      return confirm;
    },
    report({ dry_run, clock }) {
      const acceptable = refused === 0;
      return { dry_run, acceptable, confirm: this.confirm(), clock, counts, diff, diff_more: more, problems };
    },
  };
}

function isCreate({ change }: Planned): boolean {
  return (
    change?.kind === 'pillar.create' ||
    change?.kind === 'task.copy' ||
    (change !== undefined && 'expect' in change && change.expect === 'absent')
  );
}

function sizeOf(value: Value | undefined): number {
  return value === undefined ? 0 : canonicalBytes(value).length;
}

/** @throws ColonnadeError precondition_failed */
export function checkConfirmed(asked: string | undefined, reporting: Reporting): void {
  if (asked === undefined || asked === reporting.confirm()) return;
  throw new ColonnadeError(
    'precondition_failed',
    'confirm: these are not the changes of that dry run: the file or the estate has changed; nothing was imported',
    { field: 'confirm' },
  );
}
