import type { Example } from './example.ts';

const SCHEMA = {
  type: 'object',
  properties: { version: { type: 'string' }, password: { type: 'string', minLength: 8 } },
  required: ['version'],
};

/** The examples of task templates and tasks; they need the minion of the estate's. */
export const TASKS: readonly Example[] = [
  {
    route: 'POST /tasks/templates',
    summary: 'Makes a task template: a name and a JSON Schema of what its tasks are given',
    body: { id: 'deploy', name: 'Deploy', schema: SCHEMA },
    status: 201,
  },
  { route: 'GET /tasks/templates', summary: 'All templates; pages', status: 200 },
  {
    route: 'GET /tasks/templates/:tpl_id',
    summary: 'One template',
    params: { tpl_id: 'deploy' },
    status: 200,
  },
  {
    route: 'PUT /tasks/templates/:tpl_id',
    summary: 'Changes the name and the schema of a template',
    params: { tpl_id: 'deploy' },
    ifMatch: '/tasks/templates/deploy',
    body: { name: 'Deploy an application', schema: SCHEMA },
    status: 200,
  },
  {
    route: 'PUT /tasks/template/:tpl_id/defaults',
    summary: "Saves values as the caller's defaults of a template, removes those listed",
    params: { tpl_id: 'deploy' },
    body: { pillars: [{ name: 'version', value: '1.2' }], remove: ['password'] },
    status: 200,
  },
  {
    route: 'GET /tasks/template/:tpl_id/defaults',
    summary: 'What the caller saved for a template; secrets masked',
    params: { tpl_id: 'deploy' },
    status: 200,
  },
  {
    route: 'GET /tasks/template/:tpl_id/with-defaults',
    summary: "The template's schema, with what the caller saved as defaults",
    params: { tpl_id: 'deploy' },
    status: 200,
  },
  {
    route: 'POST /tasks',
    summary: 'Makes a task of a template, with its pillars; they may be saved as defaults',
    body: {
      tpl_id: 'deploy',
      minions: [{ master: 'salt-west', minion_id: 'web-1.example' }],
      pillars: [{ name: 'password', value: 'correct horse', is_secret: true }],
      from_defaults: ['version'],
      expires_in_s: 3600,
    },
    status: 201,
    keep: { task: 'id' },
  },
  {
    route: 'GET /tasks',
    summary: 'All tasks, the oldest first; pages',
    query: { state: 'created', tpl_id: 'deploy' },
    status: 200,
  },
  {
    route: 'GET /tasks/:task_id',
    summary: 'One task, and the names of its pillars',
    params: { task_id: '$task' },
    status: 200,
  },
  {
    route: 'GET /pillars/for-target',
    summary: 'The pillars of exactly one environment of a target; secrets masked',
    query: { tgt_type: 'task', tgt_id: '$task' },
    status: 200,
  },
  {
    route: 'GET /tasks/:task_id',
    summary: 'Which gives the pid of its pillars',
    params: { task_id: '$task' },
    status: 200,
    keep: { task_pillar: 'pillars.0.pid' },
  },
  {
    route: 'GET /pillars/:pid/reach',
    summary: 'The minions a pillar reaches',
    params: { pid: '$task_pillar' },
    query: { limit: '100' },
    status: 200,
  },
  {
    route: 'POST /tasks/:task_id/state',
    summary: 'Moves a task on: running, or one of its ends',
    params: { task_id: '$task' },
    body: { state: 'succeeded' },
    status: 200,
  },
  {
    route: 'DELETE /tasks/:task_id',
    summary: 'Deletes a task that has ended, with its pillars',
    params: { task_id: '$task' },
    ifMatch: '/tasks/$task',
    status: 204,
  },
  {
    route: 'DELETE /tasks/templates/:tpl_id',
    summary: "Deletes a template that no task still needs, with everybody's defaults",
    params: { tpl_id: 'deploy' },
    ifMatch: '/tasks/templates/deploy',
    status: 204,
  },
];
