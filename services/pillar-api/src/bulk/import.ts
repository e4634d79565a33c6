import { randomUUID } from 'node:crypto';
import { type Call, ColonnadeError, type ImportReport, LIMITS } from '@colonnade/contracts';
import type { EstateStore, ImportChange } from '@colonnade/estate-store';
import type { Principal } from '../auth/authenticate.ts';
import type { BulkFormat } from '../http/streamed-route.ts';
import type { Kms } from '../kms.ts';
import type { Schemas } from '../templates/schemas.ts';
import { createImportEvents } from './events.ts';
import { createLookup } from './lookup.ts';
import { atLine, identityOf, type Planned, planRecord, type Step } from './plan.ts';
import { readRecords } from './read-records.ts';
import { checkConfirmed, createReporting } from './report.ts';
import { sealPlanned } from './seal-batch.ts';
import { createWholeness } from './whole.ts';

/** Canonical bytes of values that are held before they are staged. */
const STAGE_BYTES = 2 * 1024 * 1024;

export type ImportAsk = {
  stream: AsyncIterable<Uint8Array>;
  format: BulkFormat;
  principal: Principal;
  dryRun: boolean;
  replaceSecrets: boolean;
  confirm: string | undefined;
};

type Parts = {
  store: EstateStorePart;
  kms: Kms;
  schemas: Pick<Schemas, 'check'>;
  newCall: () => Call;
};
type EstateStorePart = Pick<
  EstateStore,
  | ('findPillar' | 'getMaster' | 'getMinion' | 'getCollection' | 'getTask' | 'getTemplate')
  | ('getInventory' | 'getService' | 'snapshot')
  | ('stageImport' | 'applyImport' | 'dropImport')
>;
const NOTHING = { since: undefined, scopes: [], collections: false, masters: [], minions: [] };

/**
 * Reads, compares, seals and stages the file piece by piece, and switches to it in one transaction: all of it, or
 * nothing. A dry run only compares, and goes on after what is refused.
 * @throws ColonnadeError for the first record that is refused, naming its line; `precondition_failed` when somebody else
 *   wrote what the file changes
 */
export async function importEstate(
  { store, kms, schemas, newCall }: Parts,
  ask: ImportAsk,
): Promise<ImportReport> {
  const { principal, dryRun } = ask;
  const { clock: compared } = await store.snapshot(NOTHING);
  const id = randomUUID();
  const reporting = createReporting(ask.replaceSecrets);
  const events = createImportEvents(id);
  let changes = 0;
  const stage = async (steps: readonly Step[]) => {
    const some = steps.filter(({ planned }) => planned.change !== undefined);
    if (some.length === 0 || dryRun) return;
    await sealPlanned(kms, principal, some, newCall);
    const staged = some.map(({ planned }) => planned.change as ImportChange);
    await store.stageImport(id, staged);
    for (const { planned } of some) events.add(planned);
    changes += staged.length;
  };
  try {
    await forEachBatch(
      plan(store, schemas, ask, (line, error) => reporting.refuse(line, error)),
      async (steps) => {
        for (const { line, planned } of steps) reporting.add(line, planned);
        await stage(steps);
      },
    );
    if (dryRun) return reporting.report({ dry_run: true, clock: compared.tick });
    checkConfirmed(ask.confirm, reporting);
    if (changes === 0) return reporting.report({ dry_run: false, clock: compared.tick });
    const batch = { changes, by: principal.sub, atMs: Date.now(), events: events.drafts() };
    const { clock } = await store.applyImport(id, batch);
    return reporting.report({ dry_run: false, clock: clock.tick });
  } catch (thrown) {
    // What cannot be dropped now is swept later.
    if (!dryRun) await store.dropImport(id).catch(() => undefined);
    throw thrown;
  }
}

/** Plans record after record. What is refused ends a real import; a dry run tells of it and goes on. */
async function* plan(
  store: EstateStorePart,
  schemas: Parts['schemas'],
  { stream, format, principal, dryRun, replaceSecrets }: ImportAsk,
  refuse: (line: number, error: ColonnadeError) => void,
): AsyncGenerator<Step> {
  const lookup = createLookup(store);
  const seen = new Set<string>();
  const whole = createWholeness();
  const settle = (line: number, thrown: unknown) => {
    if (!(thrown instanceof ColonnadeError) || thrown.retryable || thrown.code === 'internal') throw thrown;
    if (!dryRun) throw atLine(line, thrown);
    refuse(line, thrown);
  };
  let line = 1;
  for await (const read of readRecords(stream, format)) {
    ({ line } = read);
    try {
      const record = 'fault' in read ? read.fault : read.record;
      if (!(record instanceof ColonnadeError) && record.kind === 'estate') {
        whole.mark(record);
        continue;
      }
      whole.count();
      if (record instanceof ColonnadeError) throw record;
      const planned = await planRecord({ principal, store, lookup, schemas, replaceSecrets }, record);
      const identity = identityOf(planned);
      if (seen.has(identity)) throw new ColonnadeError('unprocessable', 'this record is in the file twice');
      seen.add(identity);
      if (planned.change !== undefined) lookup.note(planned.change);
      yield { line, planned };
    } catch (thrown) {
      settle(line, thrown);
    }
  }
  try {
    whole.end();
  } catch (thrown) {
    settle(line, thrown);
  }
}

async function forEachBatch(
  steps: AsyncIterable<Step>,
  take: (steps: Step[]) => Promise<void>,
): Promise<void> {
  let batch: Step[] = [];
  let bytes = 0;
  for await (const step of steps) {
    batch.push(step);
    bytes += sizeOf(step.planned);
    if (batch.length < LIMITS.importStageRows && bytes < STAGE_BYTES) continue;
    await take(batch);
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) await take(batch);
}

/** A rough one: what is held are strings. */
function sizeOf({ change }: Planned): number {
  if (change?.kind !== 'pillar.create' && change?.kind !== 'pillar.update') return 0;
  const value = change.kind === 'pillar.create' ? change.record.value : change.value;
  return typeof value === 'string' ? value.length : LIMITS.valueBytes / 16;
}
