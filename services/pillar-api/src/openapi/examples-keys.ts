import type { Example } from './example.ts';

/** The examples of keys beyond their making; a key that is new has no version to be given up. */
export const KEYS: readonly Example[] = [
  {
    route: 'GET /keys/:name/rewrap',
    summary: 'How many stored values are under older versions of a key, and how far they are rewrapped',
    params: { name: 'pillars' },
    status: 200,
  },
  {
    route: 'POST /keys/:name/rewrap',
    summary: 'Brings all stored values under the version that seals, in the background',
    params: { name: 'pillars' },
    status: 202,
  },
  {
    route: 'POST /keys/:name/min-version',
    summary: 'Lets older versions of a key open nothing more, or open again',
    params: { name: 'pillars' },
    body: { version: 1 },
    status: 200,
  },
  {
    route: 'POST /keys/:name/destroy',
    summary: 'Gives a version up that may not open any more and under which nothing is stored',
    params: { name: 'pillars' },
    body: { version: 1 },
    status: 200,
    refused: 409,
  },
  {
    route: 'POST /keys/:name/undestroy',
    summary: 'Takes that back, until it is erased',
    params: { name: 'pillars' },
    body: { version: 1 },
    status: 200,
    refused: 409,
  },
];
