import type { Example } from './example.ts';
import { COLLECTIONS } from './examples-collections.ts';
import { EXPLAIN } from './examples-explain.ts';
import { HOOKS } from './examples-hooks.ts';
import { KEYS } from './examples-keys.ts';
import { SERVICES } from './examples-services.ts';
import { TASKS } from './examples-tasks.ts';
import { HISTORY } from './history-examples.ts';

/** The examples of the estate: pillars, collections, masters and minions. */
const ESTATE: readonly Example[] = [
  {
    route: 'POST /pillars',
    summary: 'Creates a pillar; a secret is sealed before it is stored',
    body: { tgt_type: 'root', name: 'motd', value: { text: 'hello', level: 1 } },
    status: 201,
    keep: { motd: 'pid' },
  },
  {
    route: 'GET /pillars/:pid',
    summary: "One pillar; a secret's value is masked",
    params: { pid: '$motd' },
    status: 200,
  },
  {
    route: 'PUT /pillars/:pid',
    summary: 'Changes the value of a pillar that is no secret',
    params: { pid: '$motd' },
    ifMatch: '/pillars/$motd',
    body: { value: 'good morning' },
    status: 200,
  },
  {
    route: 'POST /pillars/:pid/seal',
    summary: 'Makes a plain pillar a secret, and purges the plain values of its history',
    params: { pid: '$motd' },
    ifMatch: '/pillars/$motd',
    status: 200,
  },
  {
    route: 'POST /pillars/:pid/reveal',
    summary: 'The value of one secret; on record before it is answered',
    params: { pid: '$motd' },
    status: 200,
  },
  {
    route: 'POST /pillars/:pid/unseal',
    summary: 'Makes a secret a plain pillar',
    params: { pid: '$motd' },
    ifMatch: '/pillars/$motd',
    status: 200,
  },
  {
    route: 'GET /pillars/:pid/versions',
    summary: 'The history of a pillar, oldest first; secrets masked',
    params: { pid: '$motd' },
    query: { limit: '10' },
    status: 200,
  },
  {
    route: 'POST /pillars/search',
    summary: 'Pillars across all scopes, by name, value, who and when; pages; secrets masked',
    body: { name_prefix: 'mo', value: 'good', limit: 10 },
    status: 200,
  },
  {
    route: 'POST /import',
    summary: 'Many records, all or nothing; `dry_run` shows what it would do',
    query: { dry_run: 'true' },
    text: {
      type: 'application/x-ndjson',
      body: '{"kind":"pillar","tgt_type":"root","name":"shell","value":"/bin/sh"}\n',
    },
    status: 200,
  },
  {
    route: 'GET /export',
    summary: 'The estate of one moment, as YAML documents or JSON lines',
    query: { format: 'json' },
    status: 200,
  },
  {
    route: 'POST /pillars/:pid/purge-history',
    summary: "Empties the values of a pillar's past versions, for good",
    params: { pid: '$motd' },
    status: 204,
  },
  {
    route: 'POST /pillars/list',
    summary: 'Root and minion pillars; pages; secrets masked',
    body: { tgt_type: 'root', name: 'motd', limit: 10 },
    status: 200,
  },
  {
    route: 'DELETE /pillars/:pid',
    summary: 'Deletes a pillar; its history stays',
    params: { pid: '$motd' },
    ifMatch: '/pillars/$motd',
    status: 204,
  },
  ...COLLECTIONS,
  {
    route: 'POST /masters',
    summary: 'Registers a logical master; shows its token and its Redis user once',
    body: { id: 'salt-west', envs: ['prod'] },
    status: 201,
  },
  { route: 'GET /masters', summary: 'All masters; pages', query: { limit: '100' }, status: 200 },
  { route: 'GET /masters/:id', summary: 'One master', params: { id: 'salt-west' }, status: 200 },
  {
    route: 'PUT /masters/:id',
    summary: 'Changes the environments of a master and what happens to unknown minions',
    params: { id: 'salt-west' },
    ifMatch: '/masters/salt-west',
    body: { envs: ['prod', 'qa'], on_unknown_minion: 'refuse' },
    status: 200,
  },
  {
    route: 'POST /masters/:id/tokens',
    summary: 'A further token of a master, shown once',
    params: { id: 'salt-west' },
    body: { token_lifetime_s: 86_400 },
    status: 201,
    keep: { jti: 'jti' },
  },
  {
    route: 'DELETE /masters/:id/tokens/:jti',
    summary: "Revokes a master's token",
    params: { id: 'salt-west', jti: '$jti' },
    status: 204,
  },
  {
    route: 'POST /generations',
    summary: 'Asks for policies anew; answered when the wish is kept',
    body: { all: false },
    status: 202,
  },
  ...HOOKS,
  {
    route: 'POST /inventories',
    summary: 'Takes the inventory of a minion; of one that is not registered it is pending',
    body: {
      master: 'salt-west',
      minion_id: 'web-1.example',
      hostname: 'web-1.example',
      os: { name: 'Debian', version: '13' },
      ips: ['192.0.2.7'],
      roles: ['web'],
    },
    status: 201,
    otherStatus: 200,
  },
  {
    route: 'POST /inventories',
    summary: 'Another one, of a minion that will be refused',
    body: { master: 'salt-west', minion_id: 'web-9.example' },
    status: 201,
  },
  {
    route: 'GET /inventories',
    summary: 'Inventories; pages',
    query: { master: 'salt-west', state: 'pending' },
    status: 200,
  },
  {
    route: 'GET /masters/:master/minions/:id/inventory',
    summary: 'One inventory',
    params: { master: 'salt-west', id: 'web-1.example' },
    status: 200,
  },
  {
    route: 'DELETE /masters/:master/minions/:id/inventory',
    summary: 'Refuses a minion that is pending',
    params: { master: 'salt-west', id: 'web-9.example' },
    ifMatch: '/masters/salt-west/minions/web-9.example/inventory',
    status: 204,
  },
  {
    route: 'PUT /masters/:master/minions/:id',
    summary: 'Registers a minion or sets its collections, a later one wins',
    params: { master: 'salt-west', id: 'web-1.example' },
    ifNoneMatch: true,
    body: { collections: ['web'] },
    status: 201,
    otherStatus: 200,
  },
  {
    route: 'GET /masters/:master/minions/:id/policies/diff',
    summary: "What differs between a minion's last two compiled pillars; of a secret only that it does",
    params: { master: 'salt-west', id: 'web-1.example' },
    status: 200,
    later: true,
  },
  {
    route: 'GET /masters/:master/minions',
    summary: 'The minions of a master; pages',
    params: { master: 'salt-west' },
    query: { collection: 'web' },
    status: 200,
  },
  {
    route: 'GET /masters/:master/minions/:id',
    summary: 'One minion',
    params: { master: 'salt-west', id: 'web-1.example' },
    status: 200,
  },
  ...EXPLAIN,
  ...TASKS,
  {
    route: 'DELETE /masters/:master/minions/:id',
    summary: 'Deletes a minion that has no pillars',
    params: { master: 'salt-west', id: 'web-1.example' },
    ifMatch: '/masters/salt-west/minions/web-1.example',
    status: 204,
  },
  {
    route: 'DELETE /masters/:id',
    summary: 'Revokes the tokens of a master that has no minions, and deletes it',
    params: { id: 'salt-west' },
    ifMatch: '/masters/salt-west',
    status: 204,
  },
  {
    route: 'DELETE /collections/:id',
    summary: 'Deletes a collection that has no children, members or pillars',
    params: { id: 'web' },
    ifMatch: '/collections/web',
    status: 204,
  },
];

/** The examples of who may, and of this API itself. */
const ACCESS: readonly Example[] = [
  {
    route: 'POST /tokens',
    summary: 'Makes an API token, shown once; roles for the whole estate or for a part of it',
    body: {
      ...{ sub: 'ann', roles: ['viewer'], expires_in_s: 86_400 },
      scoped_roles: [{ role: 'editor', collections: ['web'], name_prefixes: ['app_'] }],
    },
    status: 201,
    keep: { token: 'id' },
  },
  { route: 'GET /tokens', summary: 'All tokens, without their secrets; pages', status: 200 },
  {
    route: 'DELETE /tokens/:id',
    summary: 'Deletes an API token; it is refused from the next request on',
    params: { id: '$token' },
    status: 204,
  },
  {
    route: 'POST /revocations',
    summary: 'Revokes what an OpenID Connect issuer gave: the tokens of a user up to now, or one token',
    body: { sub: 'ann' },
    status: 201,
    keep: { revocation_token: 'id' },
  },
  { route: 'GET /revocations', summary: 'The revocations that have not ended; pages', status: 200 },
  {
    route: 'DELETE /revocations/:id',
    summary: 'Takes a revocation back',
    params: { id: '$revocation_token' },
    status: 204,
  },
  { route: 'GET /keys', summary: 'The keys of the KMS and their versions; pages', status: 200 },
  {
    route: 'POST /keys/:name/rotate',
    summary: 'Makes the next version of a key; it seals when every replica of crypto-kms knows it',
    params: { name: 'pillars' },
    status: 201,
  },
  ...KEYS,
  {
    route: 'GET /changes',
    summary: 'Server-sent events of what changes; Last-Event-ID goes on where a stream ended',
    query: { once: 'true' },
    status: 200,
  },
  { route: 'GET /whoami', summary: 'Who the token belongs to, its roles and permissions', status: 200 },
  { route: 'GET /limits', summary: 'Every limit there is, and the rates', status: 200 },
];

/** In the order in which the test runs them. */
export const EXAMPLES: readonly Example[] = [...ESTATE, ...HISTORY, ...ACCESS, ...SERVICES];
