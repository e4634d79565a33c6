import { canonicalBytes, canonicalText, type Value } from '@colonnade/value';
import { parseMessage } from './codec.ts';
import type { WireForm } from './endpoints.ts';
import { type ErrorCode, isErrorCode } from './errors.ts';
import { hasKeys, isText } from './plainly.ts';

type Request = { minions: { master: string; minion_id: string }[]; fresh?: boolean | undefined };
type Item =
  | { ok: true; result: { pillar: Value; secrets: string[] } }
  | { ok: false; error: { code: ErrorCode; message: string } };
type Response = { clock: number; items: Item[] };

/** Compiled pillars are large, and the schema's walk and copies cost more than to write them. Requests are the schema's. */
export const compileWire: WireForm<Request, Response> = {
  writeRequest: (request) => canonicalBytes(request),
  readRequest: () => undefined,
  writeResponse: ({ clock, items }) =>
    Buffer.from(`{"clock":${clock},"items":[${items.map((item) => canonicalText(item)).join(',')}]}`),
  readResponse(bytes) {
    const tree = parseMessage(bytes);
    if (!hasKeys(tree, 2) || !Array.isArray(tree.items) || !tree.items.every(isItem)) return undefined;
    if (typeof tree.clock !== 'bigint' || !Number.isSafeInteger(Number(tree.clock))) return undefined;
    return { clock: Number(tree.clock), items: tree.items as Item[] };
  },
};

function isItem(item: Value): boolean {
  if (!hasKeys(item, 2)) return false;
  const { ok, result, error } = item;
  if (ok === true) {
    return hasKeys(result, 2) && result.pillar !== undefined && isTexts(result.secrets);
  }
  return ok === false && hasKeys(error, 2) && isErrorCode(error.code) && isText(error.message, 0, 2048);
}

function isTexts(value: Value | undefined): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
