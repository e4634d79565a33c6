import type { Value } from '@colonnade/value';

/** The part of the port that is about services outside. */

export type ServiceRecord = {
  /** Its name. */
  id: string;
  /** What it may publish; what that says is for the caller. */
  types: Value;
  /** Ids of the enrolments that count now. */
  enrolmentIds: readonly string[];
  tick: number;
};

export type ServiceMutation =
  | { kind: 'service.put'; expect: number | 'absent' | undefined; record: Omit<ServiceRecord, 'tick'> }
  | { kind: 'service.delete'; id: string; expect: number | undefined };

export interface ServiceReads {
  getService(id: string): Promise<ServiceRecord | undefined>;
  /** In the order of their names. */
  listServices(page: {
    after: string | undefined;
    limit: number;
  }): Promise<{ rows: readonly ServiceRecord[]; next: string | undefined }>;
}
