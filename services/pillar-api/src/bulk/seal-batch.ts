import { type Call, ColonnadeError, LIMITS } from '@colonnade/contracts';
import { canonicalBytes, type Value } from '@colonnade/value';
import type { Principal } from '../auth/authenticate.ts';
import type { Kms } from '../kms.ts';
import { asValueFault } from '../seal.ts';
import { atLine, type Planned, type Step } from './plan.ts';

/** Bytes of plaintext in one request to the KMS: sealed they are a third more, and their places come on top. */
const BATCH_BYTES = LIMITS.kmsBatchBytes / 3;
/** Requests that ask whether a sealed value opens, at the same time. */
const VERIFY_AT_ONCE = 16;

/**
 * Seals what is to be secret and still plain, before it is staged: no plaintext of a secret reaches the store. What came
 * sealed must open as exactly its pillar.
 * @throws ColonnadeError value_invalid, naming the line | kms_unavailable | key_not_configured …
 */
export async function sealPlanned(
  kms: Kms,
  principal: Principal,
  steps: readonly Step[],
  newCall: () => Call,
): Promise<void> {
  const all = steps.map(({ planned }) => planned);
  for (const batch of batchesOf(all.filter(({ seal }) => seal !== undefined))) {
    const items = batch.map(({ seal, change }) => ({ context: seal as never, value: plainValueOf(change) }));
    const sealed = await kms.sealAll(items, newCall());
    for (const [index, one] of batch.entries()) setValue(one, sealed[index] as Value);
  }
  const given = steps.filter(({ planned }) => planned.verify !== undefined);
  for (let start = 0; start < given.length; start += VERIFY_AT_ONCE) {
    await Promise.all(
      given.slice(start, start + VERIFY_AT_ONCE).map((one) => verify(kms, principal, one, newCall())),
    );
  }
}

async function verify(kms: Kms, principal: Principal, { line, planned }: Step, call: Call): Promise<void> {
  const { verify: context, change } = planned;
  if (context === undefined) return;
  try {
    await kms.verify(principal, context, plainValueOf(change), call);
  } catch (thrown) {
    throw atLine(line, asValueFault(thrown));
  }
}

function* batchesOf(all: readonly Planned[]): Generator<Planned[]> {
  let batch: Planned[] = [];
  let bytes = 0;
  for (const one of all) {
    const size = canonicalBytes(plainValueOf(one.change)).length;
    if (batch.length > 0 && (bytes + size > BATCH_BYTES || batch.length === LIMITS.kmsBatchItems)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(one);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

function plainValueOf(change: Planned['change']): Value {
  if (change?.kind === 'pillar.create') return change.record.value;
  if (change?.kind === 'pillar.update') return change.value;
  throw new ColonnadeError('internal', 'only pillars are sealed');
}

function setValue(planned: Planned, value: Value): void {
  const { change } = planned;
  if (change?.kind === 'pillar.create') change.record.value = value;
  else if (change?.kind === 'pillar.update') change.value = value;
}
