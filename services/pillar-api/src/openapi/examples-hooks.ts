import type { Example } from './example.ts';

/** Hooks and generations, which hook-runner answers. */
export const HOOKS: readonly Example[] = [
  {
    route: 'GET /generations',
    summary: 'What the generations came to, newest first; pages',
    status: 200,
    keep: { generation: 'items.0.id' },
    later: true,
  },
  {
    route: 'GET /generations/:id',
    summary: 'One generation, with the minions it updated and those that keep their policies',
    params: { id: '$generation' },
    status: 200,
  },
  {
    route: 'GET /hooks',
    summary: 'What would run for each event, and what is in the folders besides; pages',
    status: 200,
  },
  {
    route: 'GET /hooks/runs',
    summary: 'What became of hooks, newest first; pages',
    query: { event: 'policy-generation-finished' },
    status: 200,
  },
  {
    route: 'POST /hooks/:event/run',
    summary: 'Runs the hooks of an event by hand; a dry run only says what would run',
    params: { event: 'policy-generation-started' },
    body: { parameters: { RUDDER_GENERATION_DATETIME: '2026-01-31T12:00:00.000Z' }, dry_run: true },
    status: 200,
  },
];
