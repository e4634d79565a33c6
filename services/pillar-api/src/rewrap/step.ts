import { type Call, ColonnadeError, ENC_MARKER, type ErrorCode } from '@colonnade/contracts';
import type { EstateStore, SealedRow } from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import type { Kms } from '../kms.ts';
import { checkCount, findUnopenable, toWire } from '../kms-check.ts';

type Wrapping = { kid: string; dek_wrap_nonce_b64: string; dek_wrapped_b64: string };
export type Failed = { pid: string; code: ErrorCode };

/**
 * Brings some stored values under the key that seals now: crypto-kms wraps their DEKs anew, and each value is swapped where it is
 * still what was read, and where the new one opens: rather left under its old key than lost under the new one.
 * @returns how many were swapped, and which do not open in their place
 * @throws ColonnadeError `kms_unavailable` | `unavailable`: nothing is lost, and the next try goes on
 */
export async function rewrapRows(
  rows: readonly SealedRow[],
  {
    store,
    kms,
    call,
  }: { store: Pick<EstateStore, 'swapSealed'>; kms: Pick<Kms, 'rewrap' | 'check'>; call: Call },
): Promise<{ swapped: number; failed: readonly Failed[] }> {
  const failed: Failed[] = [];
  const readable = rows.flatMap((row) => {
    const wrapping = wrappingOf(row.value);
    if (wrapping === undefined) failed.push({ pid: row.pid, code: 'value_invalid' });
    return wrapping === undefined ? [] : [{ row, wrapping }];
  });
  if (readable.length === 0) return { swapped: 0, failed };
  const asked = readable.map(({ row, wrapping }) => ({ ...wrapping, context: toWire(row) }));
  const { items } = await kms.rewrap({ items: asked }, call);
  checkCount(items, readable);
  const rewrapped = readable.flatMap(({ row }, i) => {
    const item = items[i];
    if (item?.ok === true) return [{ context: row, value: withWrapping(row.value, item.result) }];
    failed.push({ pid: row.pid, code: item?.error.code ?? 'internal' });
    return [];
  });
  const bad = await findUnopenable(kms, rewrapped, call);
  const swaps = rewrapped
    .filter((_, i) => !bad.has(i))
    .map(({ context: { pid, value: from }, value: to }) => ({ pid, from, to }));
  const swapped = swaps.length === 0 ? 0 : await store.swapSealed(swaps);
  await checkStored(
    kms,
    rewrapped.filter((_, i) => bad.has(i)).map(({ context }) => context),
    call,
  );
  for (const i of bad) failed.push({ pid: rewrapped[i]?.context.pid ?? '', code: 'decrypt_failed' });
  return { swapped, failed };
}

/**
 * Of what does not open as it was rewrapped: it must not open as it is stored either, or it is the rewrapping that is at fault.
 * @throws ColonnadeError `kms_unavailable`
 */
async function checkStored(kms: Pick<Kms, 'check'>, rows: readonly SealedRow[], call: Call): Promise<void> {
  const faulty = await findUnopenable(
    kms,
    rows.map((row) => ({ context: row, value: row.value })),
    call,
  );
  if (faulty.size === rows.length) return;
  throw new ColonnadeError(
    'kms_unavailable',
    `crypto-kms has rewrapped ${rows.length - faulty.size} values so that they do not open; they stay as they were. Look whether all its processes have the same keys`,
  );
}

/** Undefined for what crypto-kms cannot have sealed; what else is wrong with it, crypto-kms says. */
function wrappingOf(value: Value): Wrapping | undefined {
  const enc = fieldsOf(fieldsOf(value)[ENC_MARKER]);
  const { kid, dek_wrap_nonce_b64, dek_wrapped_b64 } = enc;
  const isText = (part: Value | undefined, most: number): part is string =>
    typeof part === 'string' && part.length > 0 && part.length <= most;
  if (!isText(kid, 128) || !isText(dek_wrap_nonce_b64, 32) || !isText(dek_wrapped_b64, 128)) return undefined;
  return { kid, dek_wrap_nonce_b64, dek_wrapped_b64 };
}

function withWrapping(value: Value, wrapping: Wrapping): Value {
  const enc = Object.assign(Object.create(null), fieldsOf(fieldsOf(value)[ENC_MARKER]), wrapping);
  return Object.assign(Object.create(null), fieldsOf(value), { [ENC_MARKER]: enc });
}

function fieldsOf(value: Value | undefined): { readonly [field: string]: Value } {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}
