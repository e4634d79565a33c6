import { type Collection, Long } from 'mongodb';
import type { EstateStore, Lease } from '../port.ts';
import { checkFence, checkTtl } from '../rules/lease.ts';
import type { LeaseDocument } from './documents.ts';
import { INDEX } from './schema.ts';
import { flush, type Group } from './transaction.ts';

/**
 * Takes or renews a lease, by the clock of the server. A holder that renews in time keeps its fence; whoever takes a
 * lease that ran out, be it the same holder, gets a higher one. One operation, atomic also outside a transaction.
 * @throws ColonnadeError bad_request
 */
export async function acquireLease(
  leases: Collection<LeaseDocument>,
  within: object,
  { name, holder, ttlMs }: { name: string; holder: string; ttlMs: number },
): Promise<Lease | undefined> {
  checkTtl(ttlMs);
  // As numbers: servers that only speak MongoDB's protocol get the comparison of a stored date with $$NOW wrong.
  const isAlive = { $gt: [{ $toLong: '$expires_at' }, { $toLong: '$$NOW' }] };
  const isRefused = { $and: [isAlive, { $ne: ['$holder', { $literal: holder }] }] };
  const end = { $add: ['$$NOW', ttlMs] };
  const endsSooner = { $lte: [{ $toLong: '$expires_at' }, { $toLong: end }] };
  const next = { $add: [{ $ifNull: ['$fence', 0] }, 1] };
  const change = {
    holder: { $cond: [isRefused, '$holder', { $literal: holder }] },
    fence: { $cond: [isAlive, '$fence', next] },
    // The clock was set: nobody waits for longer than a lease lives.
    expires_at: { $cond: [{ $and: [isRefused, endsSooner] }, '$expires_at', end] },
  };
  const options = { ...within, upsert: true, returnDocument: 'after' } as const;
  const lease = await leases.findOneAndUpdate({ _id: name }, [{ $set: change }], options);
  if (lease === null || lease.holder !== holder) return undefined;
  return { name, holder, fence: lease.fence, expiresAtMs: lease.expires_at.getTime() };
}

/** Lets another take it at once; the document stays, since its fence must never go down. */
export async function releaseLease(
  leases: Collection<LeaseDocument>,
  within: object,
  { name, holder }: { name: string; holder: string },
): Promise<void> {
  const change = { $set: { expires_at: new Date(0) } };
  await leases.updateOne({ _id: name, holder }, change, { ...within, hint: INDEX.id });
}

/**
 * The lease is written too, as the last thing: should it get another holder meanwhile, the transaction fails.
 * @throws ColonnadeError `conflict` when the fence is not the lease's newest: nothing is dropped.
 */
export async function dropOutbox(
  group: Group,
  { tick, index }: Parameters<EstateStore['dropOutbox']>[0],
  lease: Parameters<EstateStore['dropOutbox']>[1],
): Promise<void> {
  const { tables, within } = group;
  await flush(group);
  const upTo = Long.fromNumber(tick);
  const published = { $or: [{ tick: { $lt: upTo } }, { tick: upTo, index: { $lte: index } }] };
  await tables.outbox.deleteMany({ tick: { $lte: upTo }, ...published }, { ...within, hint: INDEX.outbox });
  const newest = { _id: lease.name, fence: lease.fence };
  const options = { ...within, hint: INDEX.id };
  const { matchedCount } = await tables.leases.updateOne(newest, { $inc: { drops: 1 } }, options);
  checkFence(matchedCount === 1);
}
