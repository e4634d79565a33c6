import { ColonnadeError, type PillarContext } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import { requireOn } from './auth/scope.ts';
import type { Input } from './http/route.ts';
import type { Kms } from './kms.ts';
import { checkOpenValue, isSealedValue } from './pillar-value.ts';

type Asked = Pick<Input<unknown, unknown, unknown>, 'principal' | 'call'>;

/**
 * The sealed form of a secret's value (seed 000: on the way to the store). A value that is sealed already is not sealed
 * again: it must open under exactly this pillar's AAD, and come from someone who may read secrets, since whoever
 * could store what he cannot read could move sealed values about.
 * @throws ColonnadeError `value_invalid` | `forbidden` | key_not_configured | kms_unavailable
 */
export async function sealForStore(
  kms: Kms,
  asked: Asked,
  context: PillarContext,
  value: Value,
): Promise<Value> {
  if (!isSealedValue(value)) {
    checkOpenValue(value);
    return kms.seal(context, value, asked.call);
  }
  await requireOn(asked.principal, 'secret:reveal', context);
  try {
    await kms.verify(asked.principal, context, value, asked.call);
  } catch (thrown) {
    throw asValueFault(thrown);
  }
  return value;
}

/** Here it is the client's value that does not open, not one that was kept. */
export function asValueFault(thrown: unknown): unknown {
  if (!(thrown instanceof ColonnadeError)) return thrown;
  if (!['decrypt_failed', 'kid_unknown', 'value_invalid', 'bad_request'].includes(thrown.code)) return thrown;
  const why =
    'value: this "$enc" does not open as the value of this pillar (another key, target, environment or name)';
  return new ColonnadeError('value_invalid', why, { field: 'value', cause: thrown });
}
