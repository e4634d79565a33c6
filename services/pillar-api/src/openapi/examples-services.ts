import type { Example } from './example.ts';

const TYPES = [
  { type: 'order.placed', schema: { type: 'object', properties: { total: { type: 'integer' } } } },
  { type: 'order.paid' },
];

/** Services outside, and the events they publish. */
export const SERVICES: readonly Example[] = [
  {
    route: 'POST /services',
    summary: 'Registers a service, with the types of events it may publish',
    body: { id: 'shop', types: TYPES },
    status: 201,
  },
  {
    route: 'GET /services',
    summary: 'Services; pages',
    query: { limit: '100' },
    status: 200,
  },
  { route: 'GET /services/:id', summary: 'One service', params: { id: 'shop' }, status: 200 },
  {
    route: 'PUT /services/:id',
    summary: 'What it may publish from now on',
    params: { id: 'shop' },
    ifMatch: '/services/shop',
    body: { types: TYPES.slice(0, 1) },
    status: 200,
  },
  {
    route: 'POST /services/:id/enrolments',
    summary: 'A one-time token with which a host of the service gets its first identity',
    params: { id: 'shop' },
    body: { expires_in_s: 600 },
    status: 201,
    keep: { service_enrolment_token: 'token', enrolment: 'id' },
  },
  {
    route: 'POST /identity/enrol',
    summary: 'The first identity of a host of a service',
    bearer: '$service_enrolment_token',
    status: 201,
    keep: { service_token: 'token' },
  },
  {
    route: 'POST /events',
    summary: 'Publishes an event of a type of its own; answered when it is stored, once for each `id`',
    bearer: '$service_token',
    body: { id: 'order-7-placed', type: 'order.placed', subject: '/orders/7', data: { total: 42 } },
    status: 201,
    otherStatus: 200,
  },
  {
    route: 'DELETE /services/:id/enrolments/:sid',
    summary: 'Takes the identity of one host back, at once',
    params: { id: 'shop', sid: '$enrolment' },
    status: 204,
  },
  {
    route: 'DELETE /services/:id',
    summary: 'Deletes a service; its identities end at once',
    params: { id: 'shop' },
    ifMatch: '/services/shop',
    status: 204,
  },
];
