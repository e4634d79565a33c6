import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { attributesOf, mergeRef, pillarRef } from '../event/attributes.ts';
import { describeRequest, explainRefOfBody, pillarRefOfBody } from './describe.ts';

const TABLE: readonly (readonly [
  request: string,
  route: string | undefined,
  verb: string,
  object: object | undefined,
])[] = [
  ['POST', '/pillars', 'create', { resource: 'pillars' }],
  ['GET', '/pillars/:pid', 'get', { resource: 'pillars', name: 'P', uid: 'P' }],
  ['PUT', '/pillars/:pid', 'update', { resource: 'pillars', name: 'P', uid: 'P' }],
  ['DELETE', '/pillars/:pid', 'delete', { resource: 'pillars', name: 'P', uid: 'P' }],
  [
    'GET',
    '/pillars/:pid/versions',
    'get',
    { resource: 'pillars', name: 'P', uid: 'P', subresource: 'versions' },
  ],
  [
    'POST',
    '/pillars/:pid/reveal',
    'create',
    { resource: 'pillars', name: 'P', uid: 'P', subresource: 'reveal' },
  ],
  ['POST', '/pillars/list', 'list', { resource: 'pillars' }],
  ['POST', '/pillars/search', 'list', { resource: 'pillars', subresource: 'search' }],
  ['GET', '/pillars/for-target', 'list', { resource: 'pillars', subresource: 'for-target' }],
  [
    'GET',
    '/pillars/:pid/versions/:tick',
    'get',
    { resource: 'pillars', name: 'P', uid: 'P', subresource: 'versions' },
  ],
  ['POST', '/import', 'create', { resource: 'pillars', subresource: 'import' }],
  ['GET', '/export', 'get', { resource: 'pillars', subresource: 'export' }],
  ['POST', '/scopes/restore', 'create', { resource: 'scopes', subresource: 'restore' }],
  ['GET', '/history/retention', 'get', { resource: 'history', subresource: 'retention' }],
  ['POST', '/tasks', 'create', { resource: 'tasks' }],
  ['POST', '/tasks/:id/state', 'create', { resource: 'tasks', name: 'I', subresource: 'state' }],
  ['GET', '/tasks/templates', 'list', { resource: 'tasktemplates' }],
  ['PUT', '/tasks/templates/:id', 'update', { resource: 'tasktemplates', name: 'I' }],
  [
    'GET',
    '/tasks/template/:id/with-defaults',
    'get',
    { resource: 'tasktemplates', name: 'I', subresource: 'with-defaults' },
  ],
  [
    'DELETE',
    '/masters/:master/minions/:id/inventory',
    'delete',
    { resource: 'minions', namespace: 'M', name: 'I', subresource: 'inventory' },
  ],
  [
    'POST',
    '/masters/:master/minions/:id/move',
    'create',
    { resource: 'minions', namespace: 'M', name: 'I', subresource: 'move' },
  ],
  ['POST', '/revocations', 'create', { resource: 'revocations' }],
  ['POST', '/keys/:id/rotate', 'create', { resource: 'keys', name: 'I', subresource: 'rotate' }],
  ['POST', '/generations', 'create', { resource: 'generations' }],
  ['GET', '/changes', 'watch', { resource: 'changes' }],
  ['GET', '/collections', 'list', { resource: 'collections' }],
  ['PATCH', '/collections/:id', 'patch', { resource: 'collections', name: 'I' }],
  ['GET', '/masters/:id', 'get', { resource: 'masters', name: 'I' }],
  ['POST', '/masters/:id/tokens', 'create', { resource: 'masters', name: 'I', subresource: 'tokens' }],
  ['DELETE', '/masters/:id/tokens/:jti', 'delete', { resource: 'masters', name: 'I', subresource: 'tokens' }],
  ['GET', '/masters/:master/minions', 'list', { resource: 'minions', namespace: 'M' }],
  ['PUT', '/masters/:master/minions/:id', 'update', { resource: 'minions', namespace: 'M', name: 'I' }],
  ['POST', '/tokens', 'create', { resource: 'tokens' }],
  ['DELETE', '/tokens/:id', 'delete', { resource: 'tokens', name: 'I' }],
  ['GET', '/explain', 'get', { resource: 'minions', namespace: 'M', name: 'W', subresource: 'explain' }],
  ['POST', '/explain/preview', 'get', { resource: 'minions', subresource: 'explain' }],
  ['GET', '/pillars/:pid/reach', 'get', { resource: 'pillars', name: 'P', uid: 'P', subresource: 'reach' }],
  ['GET', '/metrics', 'get', undefined],
  ['OPTIONS', undefined, 'options', undefined],
];

const params = { pid: 'P', id: 'I', master: 'M', jti: 'J' };
const query = { master: 'M', minion_id: 'W' };

describe('what a request of our API is to a policy', () => {
  for (const [method, route, verb, object] of TABLE) {
    test(`${method} ${route}: ${verb} ${JSON.stringify(object)}`, () => {
      const described = describeRequest({ method, route, params, query });
      assert.equal(described.verb, verb);
      assert.deepEqual(defined(described.objectRef), object);
    });
  }

  test('a preview is about the minion its body names', () => {
    const ref = explainRefOfBody({ master: 'M', minion_id: 'W', changes: [] });
    assert.deepEqual(defined(ref), {
      ...{ resource: 'minions', subresource: 'explain', namespace: 'M', name: 'W' },
    });
    assert.deepEqual(defined(explainRefOfBody([7])), { resource: 'minions', subresource: 'explain' });
  });

  test('a pillar lives in the kind of its target, or in its collection', () => {
    assert.equal(pillarRef({ tgtType: 'root', tgtId: 'root', name: 'a' }).namespace, 'root');
    assert.equal(pillarRef({ tgtType: 'minion', tgtId: 'web-1' }).namespace, 'minion');
    assert.equal(pillarRef({ tgtType: 'collection', tgtId: 'root' }).namespace, 'collection:root');
    const made = pillarRefOfBody({ tgt_type: 'collection', collection_id: 'c1', name: 'x' });
    assert.deepEqual(defined(made), { resource: 'pillars', namespace: 'collection:c1', name: 'x' });
    for (const body of [null, undefined, 'x', [], { tgt_type: 1n, name: {} }]) {
      assert.deepEqual(defined(pillarRefOfBody(body)), { resource: 'pillars' });
    }
  });

  test('attributes: our group where there is an object, the path without its query where there is none', () => {
    const user = { username: 'a', groups: ['g'] };
    const merge = attributesOf({ verb: 'get', requestURI: '/x', user, objectRef: mergeRef('m1', 'web-1') });
    assert.deepEqual(merge, {
      user: { name: 'a', groups: ['g'] },
      ...{ verb: 'get', isResource: true, apiGroup: 'colonnade', resource: 'minions', subresource: 'pillar' },
      ...{ namespace: 'm1', name: 'web-1', path: '/x' },
    });
    const url = attributesOf({ verb: 'get', requestURI: '/metrics?a=1#b', user });
    assert.deepEqual([url.isResource, url.apiGroup, url.path], [false, '', '/metrics']);
  });
});

/** What would be written: fields that are there. */
function defined(ref: object | undefined): object | undefined {
  return ref === undefined
    ? ref
    : Object.fromEntries(Object.entries(ref).filter(([, value]) => value !== undefined));
}
