import { canonicalText, type Value } from '@colonnade/value';
import {
  BRIDGE_EVENT,
  type BridgeReply,
  type BridgeRequest,
  zBridgeReply,
  zBridgeRequest,
} from './bridge.ts';
import { decodeTree, parseMessage } from './codec.ts';
import { LIMITS } from './limits.ts';
import { zPillarenvRequest } from './merger.ts';
import { zMasterId, zMinionId } from './names.ts';
import { hasKeys, isText } from './plainly.ts';

/**
 * The bridge's messages written and read by hand, thousands of times a second. What is written is what the schema would
 * write; what is read is waved through only when it is plainly right, and is the schema's to refuse otherwise.
 */

const REQUEST_KEYS = 7;
const REPLY_KEYS = 5;

/** The canonical text of a request. */
export function writeBridgeRequest(request: BridgeRequest): string {
  const { event, master, minion_id, pillarenv, token, traceparent, ttl_ms, v } = request;
  const trace = traceparent === undefined ? '' : `"traceparent":${canonicalText(traceparent)},`;
  return (
    `{"event":"${event}","master":${canonicalText(master)},"minion_id":${canonicalText(minion_id)},` +
    `"pillarenv":${canonicalText(pillarenv)},"token":${canonicalText(token)},${trace}"ttl_ms":${ttl_ms},"v":${v}}`
  );
}

/** @throws ColonnadeError `bad_request` naming the first faulty field, or the place where it is no JSON */
export function readBridgeRequest(bytes: Uint8Array): BridgeRequest {
  const tree = parseMessage(bytes);
  return plainRequest(tree) ?? decodeTree(zBridgeRequest, tree);
}

function plainRequest(tree: Value): BridgeRequest | undefined {
  const isTraced = typeof tree === 'object' && tree !== null && 'traceparent' in tree;
  if (!hasKeys(tree, isTraced ? REQUEST_KEYS + 1 : REQUEST_KEYS)) return undefined;
  const { event, master, minion_id, pillarenv, token, traceparent, ttl_ms, v } = tree;
  const isPlain =
    v === 1n &&
    event === BRIDGE_EVENT &&
    typeof ttl_ms === 'bigint' &&
    ttl_ms >= LIMITS.bridgeTtlMinMs &&
    ttl_ms <= Number.MAX_SAFE_INTEGER &&
    isText(token, 1, 8192) &&
    (!isTraced || isText(traceparent, 0, 64)) &&
    zMasterId.safeParse(master).success &&
    zMinionId.safeParse(minion_id).success &&
    zPillarenvRequest.safeParse(pillarenv).success;
  if (!isPlain) return undefined;
  return { ...(tree as object), v: 1, ttl_ms: Number(ttl_ms) } as BridgeRequest;
}

/** @throws ColonnadeError `bad_request` */
export function readBridgeReply(text: string): BridgeReply {
  const tree = parseMessage(text);
  const isPlain =
    hasKeys(tree, REPLY_KEYS) &&
    tree.v === 1n &&
    tree.ok === true &&
    typeof tree.id === 'string' &&
    typeof tree.clock === 'bigint' &&
    tree.clock >= Number.MIN_SAFE_INTEGER &&
    tree.clock <= Number.MAX_SAFE_INTEGER &&
    tree.pillar !== undefined;
  if (!isPlain) return decodeTree(zBridgeReply, tree);
  return { v: 1, id: tree.id as string, ok: true, pillar: tree.pillar as Value, clock: Number(tree.clock) };
}
