import type { Example } from './example.ts';

/** The tree of collections, and members by rule. */
export const COLLECTIONS: readonly Example[] = [
  {
    route: 'POST /collections',
    summary: 'Creates a collection',
    body: { id: 'web', name: 'Web servers' },
    status: 201,
  },
  { route: 'GET /collections', summary: 'All collections; pages', query: { limit: '100' }, status: 200 },
  {
    route: 'GET /collections/:id',
    summary: 'One collection with its ancestors and the names of its own pillars',
    params: { id: 'web' },
    status: 200,
  },
  {
    route: 'PATCH /collections/:id',
    summary: 'Renames a collection or moves it below another',
    params: { id: 'web' },
    ifMatch: '/collections/web',
    body: { name: 'Web' },
    status: 200,
  },
  {
    route: 'PUT /collections/:id/rule',
    summary: 'Whose inventory satisfies the rule is a member',
    params: { id: 'web' },
    ifMatch: '/collections/web',
    body: {
      all: [
        { field: 'os.name', op: 'in', values: ['Debian', 'Ubuntu'] },
        { field: 'hostname', op: 'glob', pattern: 'web-*' },
      ],
    },
    status: 200,
  },
  {
    route: 'DELETE /collections/:id/rule',
    summary: 'Takes the rule of a collection away, and with it the members by rule',
    params: { id: 'web' },
    ifMatch: '/collections/web',
    status: 200,
  },
];
