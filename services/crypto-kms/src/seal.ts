import {
  type Call,
  ColonnadeError,
  type Enc,
  hasEncMarker,
  hasNestedEncMarker,
  kmsSeal,
  LIMITS,
  type OpenContext,
} from '@colonnade/contracts';
import { checkValue, type Value, ValueError } from '@colonnade/value';
import type { z } from 'zod';
import { answerEach, outcomeAnnotations } from './batch.ts';
import { aadOf, checkSealContext } from './context.ts';
import { type Keys, sealValue } from './envelope.ts';
import type { Events } from './events.ts';
import type { Trail } from './trail.ts';

type Request = z.output<typeof kmsSeal.request>;
type Response = z.output<typeof kmsSeal.response>;

/** Bytes of a sealed item in an answer beside its ciphertext: field names, nonces, the wrapped DEK, the longest kid. */
const ITEM_OVERHEAD = 512;

/** Seals a batch for pillar-api (seed 000, «Процесс зашифрования»). */
export function createSealHandler(keys: Keys, trail: Trail, events: Events) {
  return async (request: Request, call: Call): Promise<Response> => {
    const span = trail.begin({
      verb: 'seal',
      endpoint: kmsSeal,
      call,
      user: { username: 'pillar-api', groups: ['colonnade:services'] },
      caller: 'pillar-api',
      objectRef: { resource: 'pillars' },
    });
    await keys.prepare(request.items.length);
    let answerBytes = 0;
    const items = await answerEach(request.items, call, ({ context, value }) => {
      const enc = sealOne(keys, context, value);
      answerBytes += enc.$enc.ct_b64.length + ITEM_OVERHEAD;
      return enc;
    });
    if (answerBytes > LIMITS.kmsBatchBytes)
      throw new ColonnadeError(
        'too_large',
        `the sealed batch is over ${LIMITS.kmsBatchBytes} bytes; split it`,
      );
    events.itemsAnswered('seal', items);
    await trail.later(span, { code: 200, annotations: outcomeAnnotations(items) }, call);
    return { items };
  };
}

function sealOne(keys: Keys, context: OpenContext, value: Value): Enc {
  checkSealContext(context);
  checkPlain(value);
  const enc = sealValue(keys, aadOf(context), value);
  const sealedBytes = (enc.$enc.ct_b64.length / 4) * 3 - 18;
  if (sealedBytes > LIMITS.valueBytes)
    throw new ColonnadeError('too_large', `the value is over ${LIMITS.valueBytes} bytes`, { field: 'value' });
  return enc;
}

/** What is sealed already is not sealed again (seed 000), and a `$enc` deeper down has no meaning. */
function checkPlain(value: Value): void {
  if (hasEncMarker(value) || hasNestedEncMarker(value)) {
    throw new ColonnadeError('value_invalid', 'the value holds the key "$enc"', { field: 'value' });
  }
  try {
    checkValue(value, { maxDepth: LIMITS.valueDepth });
  } catch (thrown) {
    if (!(thrown instanceof ValueError)) throw thrown;
    throw new ColonnadeError('value_invalid', thrown.message, { field: 'value', cause: thrown });
  }
}
