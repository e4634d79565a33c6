import { Long } from 'mongodb';
import type { Mutation } from '../port.ts';
import type { ServiceReads, ServiceRecord } from '../port-services.ts';
import type { PackedServicePut } from '../rules/batch.ts';
import { checkDeletable } from '../rules/expect.ts';
import { checkLimit, cutPage } from '../rules/page.ts';
import type { Tables } from './connection.ts';
import { readText, toNumber } from './documents.ts';
import { checkExpected, put } from './mutations-fleet.ts';
import { INDEX } from './schema.ts';
import type { Tx } from './transaction.ts';

/** Services outside: documents, queries and mutations. */

/** `types` is canonical text: schemas have fields with `$`, and nobody searches in them. */
export type ServiceDocument = { _id: string; types: string; enrolment_ids: readonly string[]; tick: Long };

type Within = object;

export function toService(document: ServiceDocument): ServiceRecord {
  const { _id: id, types, enrolment_ids: enrolmentIds, tick } = document;
  return { id, types: readText(types), enrolmentIds, tick: toNumber(tick) };
}

/** The types come as the text they are kept as. */
export function fromService(record: Omit<ServiceRecord, 'types'> & { types: string }): ServiceDocument {
  const { id, types, enrolmentIds, tick } = record;
  return { _id: id, types, enrolment_ids: [...enrolmentIds], tick: Long.fromNumber(tick) };
}

export async function readService(tables: Tables, within: Within, id: string) {
  const found = await tables.services.findOne({ _id: id }, within);
  return found === null ? undefined : toService(found);
}

export async function listServices(
  tables: Tables,
  within: Within,
  page: Parameters<ServiceReads['listServices']>[0],
) {
  checkLimit(page.limit);
  const options = { ...within, hint: INDEX.id, sort: { _id: 1 }, limit: page.limit + 1 } as const;
  const found = await tables.services.find({ _id: { $gt: page.after ?? '' } }, options).toArray();
  return cutPage(found.map(toService), page.limit, ({ id }) => id);
}

/** @throws ColonnadeError already_exists | not_found | precondition_failed */
export async function putService(tx: Tx, { expect, record }: PackedServicePut): Promise<void> {
  await checkExpected(tx, tx.tables.services, 'service', record.id, expect);
  await put(tx, tx.tables.services, fromService({ ...record, tick: tx.tick }));
}

/** @throws ColonnadeError not_found | precondition_failed */
export async function deleteService(
  tx: Tx,
  { id, expect }: Extract<Mutation, { kind: 'service.delete' }>,
): Promise<void> {
  checkDeletable(expect);
  await checkExpected(tx, tx.tables.services, 'service', id, expect);
  await tx.tables.services.deleteOne({ _id: id }, tx.within);
}
