import { canonicalText } from '@colonnade/value';
import type { Mutation } from '../port.ts';
import type { ServiceReads, ServiceRecord } from '../port-services.ts';
import type { PackedServicePut } from '../rules/batch.ts';
import { checkDeletable, checkExpect } from '../rules/expect.ts';
import { checkLimit, cutPage } from '../rules/page.ts';
import type { TableIo } from './archive.ts';
import type { Db } from './connection.ts';
import { readList, readValue, writeList } from './rows.ts';
import type { Tx } from './transaction.ts';

/** Services outside: rows, queries and mutations. */

type ServiceRow = { id: string; types: string; enrolment_ids: string; tick: number };

const WRITE = 'INSERT OR REPLACE INTO services (id, types, enrolment_ids, tick) VALUES (?, ?, ?, ?)';

function toService({ id, types, enrolment_ids, tick }: ServiceRow): ServiceRecord {
  return { id, types: readValue(types), enrolmentIds: readList(enrolment_ids), tick };
}

export function readService(db: Db, id: string): ServiceRecord | undefined {
  const row = db.get<ServiceRow>('SELECT * FROM services WHERE id = ?', id);
  return row && toService(row);
}

export function listServices(db: Db, page: Parameters<ServiceReads['listServices']>[0]) {
  checkLimit(page.limit);
  const sql = 'SELECT * FROM services WHERE id > ? ORDER BY id LIMIT ?';
  const found = db.all<ServiceRow>(sql, page.after ?? '', page.limit + 1).map(toService);
  return cutPage(found, page.limit, ({ id }) => id);
}

/** @throws ColonnadeError already_exists | not_found | precondition_failed */
export function putService(tx: Tx, { expect, record }: PackedServicePut): void {
  checkExpect('service', readService(tx.db, record.id), expect);
  tx.db.run(WRITE, record.id, record.types, writeList(record.enrolmentIds), tx.tick);
}

/** @throws ColonnadeError not_found | precondition_failed */
export function deleteService(tx: Tx, { id, expect }: Extract<Mutation, { kind: 'service.delete' }>): void {
  checkDeletable(expect);
  checkExpect('service', readService(tx.db, id), expect);
  tx.db.run('DELETE FROM services WHERE id = ?', id);
}

export const SERVICE_IO: TableIo<ServiceRecord> = {
  select: { sql: 'SELECT * FROM services WHERE id > ? ORDER BY id', first: [''], keyOf: ({ id }) => [id] },
  toRow: toService,
  insert: (db, { id, types, enrolmentIds, tick }) =>
    db.run(WRITE, id, canonicalText(types), writeList(enrolmentIds), tick),
};
