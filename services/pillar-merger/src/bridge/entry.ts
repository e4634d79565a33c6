import { BRIDGE_FIELD, LIMITS } from '@colonnade/contracts';

/** One entry of a master's stream, as it came from Redis. */
export type Entry = {
  master: string;
  id: string;
  /** The request's bytes; undefined when the entry is not of our making. What is too long is not kept. */
  data: Buffer | 'too_long' | undefined;
  /** How often it was handed out, this time included. */
  deliveries: number;
};

/** The Redis clock at which an entry was added, milliseconds since the epoch. */
export function startOf(entryId: string): number {
  return Number(entryId.slice(0, entryId.indexOf('-')));
}

type RawEntry = [id: Buffer, fields: Buffer[] | null];

/** Entries of XREADGROUP, XCLAIM and XRANGE; one that was deleted meanwhile is left out. */
export function toEntries(master: string, raw: unknown, deliveries: number): readonly Entry[] {
  if (!Array.isArray(raw)) return [];
  return (raw as (RawEntry | null)[]).flatMap((entry): readonly Entry[] => {
    const [id, fields] = entry ?? [];
    if (id === undefined || fields === undefined || fields === null) return [];
    const isOurs = fields.length === 2 && fields[0]?.toString('latin1') === BRIDGE_FIELD;
    return [{ master, id: id.toString('latin1'), data: isOurs ? bounded(fields[1]) : undefined, deliveries }];
  });
}

function bounded(data: Buffer | undefined): Entry['data'] {
  return data !== undefined && data.length > LIMITS.bridgeRequestBytes ? 'too_long' : data;
}
