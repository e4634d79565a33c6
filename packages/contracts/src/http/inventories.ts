import { z } from 'zod';
import { int, zValue } from '../codec.ts';
import { LIMITS } from '../limits.ts';
import { zMasterId, zMinionId } from '../names.ts';
import { pageOf, zCursor, zPageLimitText, zTime } from './common.ts';

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/u;

/** One line of text; it may become a variable of a hook. */
function line(what: string) {
  return z
    .string(`${what} must be text`)
    .refine((s) => s.isWellFormed(), `${what} holds a lone surrogate`)
    .refine((s) => Buffer.byteLength(s) <= LIMITS.inventoryTextBytes, `${what} is too long`)
    .refine((s) => !CONTROL.test(s), `${what} holds a control character`);
}

const zAddress = z.union([z.ipv4(), z.ipv6()], 'must be an IPv4 or IPv6 address');
const zAddresses = z.array(zAddress).max(LIMITS.inventoryItems, 'too many addresses');
const zRoles = z
  .array(line('a role').regex(/^[^,]+$/u, 'a role is empty or holds a comma'))
  .max(LIMITS.inventoryItems, 'too many roles');

/** What a minion tells of itself (seed 002). What is not told is absent. */
export const zInventoryFacts = z.strictObject({
  hostname: line('hostname').optional(),
  os: z
    .strictObject({
      name: line('os.name').optional(),
      version: line('os.version').optional(),
      service_pack: line('os.service_pack').optional(),
      string: line('os.string').optional(),
    })
    .optional(),
  ips: zAddresses.optional(),
  agent_type: line('agent_type').optional(),
  roles: zRoles.optional(),
  /** Whatever else is worth keeping. */
  properties: zValue.optional(),
});
export type InventoryFacts = z.infer<typeof zInventoryFacts>;

/** `POST /inventories`: of a minion, and of its master, which is its policy server. */
export const zInventory = zInventoryFacts.extend({ master: zMasterId, minion_id: zMinionId });

export const INVENTORY_STATES = ['pending', 'accepted'] as const;
const zState = z.enum(INVENTORY_STATES, 'must be "pending" or "accepted"');

export const zInventoryView = z.strictObject({
  master: z.string(),
  minion_id: z.string(),
  /** `pending`: nobody has accepted the minion yet. */
  state: zState,
  facts: zInventoryFacts,
  received_by: z.string(),
  received_at: zTime,
  clock: int(),
  etag: z.string(),
});
export const zInventoryPage = pageOf(zInventoryView);

/** `GET /inventories` */
export const zInventoryQuery = z.strictObject({
  master: zMasterId.optional(),
  state: zState.optional(),
  limit: zPageLimitText.optional(),
  cursor: zCursor.optional(),
});

/** Path of everything about one inventory. */
export const zInventoryPath = z.strictObject({ master: zMasterId, id: zMinionId });
