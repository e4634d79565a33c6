import { ColonnadeError } from '@colonnade/contracts';
import type { Clock } from '@colonnade/estate-store';

/** `<incarnation>.<tick>`: after a restore nobody goes on from a place of the estate as it was before. */
export function writeEventId({ incarnation, tick }: Clock): string {
  return `${incarnation}.${tick}`;
}

/** Reads Last-Event-ID. @throws ColonnadeError `bad_request` */
export function readEventId(header: string | string[] | undefined): Clock | undefined {
  if (header === undefined || header === '') return undefined;
  const found = typeof header === 'string' ? /^([\w-]{1,64})\.(\d{1,15})$/u.exec(header) : null;
  if (found?.[1] === undefined) {
    throw new ColonnadeError('bad_request', 'Last-Event-ID is none this API gave', {
      field: 'Last-Event-ID',
    });
  }
  return { incarnation: found[1], tick: Number(found[2]) };
}
