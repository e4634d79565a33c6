import { canonicalText, type Value } from '@colonnade/value';
import { parseMessage } from './codec.ts';
import type { WireForm } from './endpoints.ts';
import type { ErrorCode } from './errors.ts';
import type { OpenContext } from './kms.ts';
import { LIMITS } from './limits.ts';
import { TGT_TYPES, zMasterId, zMinionId } from './names.ts';
import { hasKeys, isText } from './plainly.ts';

type Item = { context: OpenContext; enc: Value };
type Request = { token: string; master: string; minion_id: string; items: Item[] };
type Result = { ok: true; result: Value } | { ok: false; error: { code: ErrorCode; message: string } };
type Response = { items: Result[] };

const TARGETS: ReadonlySet<unknown> = new Set(TGT_TYPES);

/**
 * What every merge sends and gets, written and read by hand: the schema's walk and copies cost more than the merge. What
 * is written is what the schema would write. What is read is only waved through when it is plainly right; anything else is
 * undefined, and for the schema to say.
 */
export const openForMergerWire: WireForm<Request, Response> = {
  writeRequest: ({ items, master, minion_id, token }) =>
    Buffer.from(
      `{"items":[${items.map(itemText).join(',')}],"master":${canonicalText(master)},` +
        `"minion_id":${canonicalText(minion_id)},"token":${canonicalText(token)}}`,
    ),
  readRequest(bytes) {
    const tree = parseMessage(bytes);
    return isRequest(tree) ? tree : undefined;
  },
  writeResponse({ items }) {
    const texts = items.map((item) =>
      item.ok ? `{"ok":true,"result":${canonicalText(item.result)}}` : canonicalText(item as Value),
    );
    return Buffer.from(`{"items":[${texts.join(',')}]}`);
  },
  readResponse(bytes) {
    const tree = parseMessage(bytes);
    const isGood = hasKeys(tree, 1) && Array.isArray(tree.items) && tree.items.every(isOpened);
    return isGood ? (tree as unknown as Response) : undefined;
  },
};

/** A merger sends the same sealed values again and again, in the same objects. They do not change. */
const texts = new WeakMap<Item, string>();

function itemText(item: Item): string {
  const known = texts.get(item);
  if (known !== undefined) return known;
  const text = canonicalText(item as Value);
  texts.set(item, text);
  return text;
}

function isRequest(tree: Value): tree is Value & Request {
  return (
    hasKeys(tree, 4) &&
    isText(tree.token, 1, 8192) &&
    zMasterId.safeParse(tree.master).success &&
    zMinionId.safeParse(tree.minion_id).success &&
    Array.isArray(tree.items) &&
    tree.items.length >= 1 &&
    tree.items.length <= LIMITS.kmsBatchItems &&
    tree.items.every(isItem)
  );
}

function isItem(item: Value): boolean {
  if (!hasKeys(item, 2) || item.enc === undefined) return false;
  const { context } = item;
  return (
    hasKeys(context, 4) &&
    TARGETS.has(context.tgt_type) &&
    isText(context.tgt_id, 0, 1024) &&
    isText(context.pillarenv, 1, 1024) &&
    isText(context.name, 1, 1024)
  );
}

function isOpened(item: Value): boolean {
  return hasKeys(item, 2) && item.ok === true && item.result !== undefined;
}
