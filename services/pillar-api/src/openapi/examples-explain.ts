import type { Example } from './example.ts';

/** The examples of explanations; they need the minion and the collection of the estate's. */
export const EXPLAIN: readonly Example[] = [
  {
    route: 'GET /explain',
    summary: "Which scope each key of a minion's pillar comes from",
    query: { master: 'salt-west', minion_id: 'web-1.example' },
    status: 200,
  },
  {
    route: 'GET /explain',
    summary: 'What it would have got at a clock',
    query: { master: 'salt-west', minion_id: 'web-1.example', at: '1' },
    status: 200,
  },
  {
    route: 'POST /explain/preview',
    summary: 'The same with changes that are not saved, and with other memberships',
    body: {
      ...{ master: 'salt-west', minion_id: 'web-1.example', collections: ['web'] },
      changes: [
        { op: 'set', tgt_type: 'collection', collection_id: 'web', name: 'motd', value: 'hello' },
        { op: 'set', tgt_type: 'root', name: 'password', is_secret: true },
      ],
    },
    status: 200,
  },
];
