import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backoffMs } from './backoff.ts';
import { isContested, NO_CONTEST, noteFight } from './contest.ts';
import { ownerOf, selectNamespaces } from './namespaces.ts';
import { gateFor, type NodeView, pickNode } from './rollout.ts';

const source = { namespace: 'ingress', name: 'ingress-tls' };
const existing = ['ingress', 'a', 'b', 'c'].map((name) => ({ name, terminating: name === 'c' }));
const select = (namespaces: string[], secretName = 'ingress-tls') =>
  selectNamespaces({ namespaces, secretName, source }, existing);

test('the star means every namespace but the source itself, and wins over all else', () => {
  assert.deepEqual(select(['*']), { targets: ['a', 'b'], terminating: ['c'], absent: [] });
  assert.deepEqual(select(['*', 'kube-system']), select(['*']));
  assert.deepEqual(
    select(['*'], 'other').targets,
    ['a', 'b', 'ingress'],
    'under another name it is a target like any',
  );
});

test('without a star only what is named, once', () => {
  assert.deepEqual(select(['b', 'a', 'b', 'later']), {
    targets: ['a', 'b'],
    terminating: [],
    absent: ['later'],
  });
  assert.deepEqual(select(['ingress', 'c']), { targets: [], terminating: ['c'], absent: [] });
});

test('of two that claim one Secret the older has it', () => {
  const claim = (name: string, createdAtMs: number, namespaces: string[], secretName = 's') => ({
    name,
    createdAtMs,
    namespaces,
    secretName,
  });
  const claims = [
    claim('young', 2, ['*']),
    claim('old', 1, ['a']),
    claim('b-same', 2, ['b']),
    claim('else', 0, ['*'], 't'),
  ];
  assert.equal(ownerOf(claims, 's', 'a'), 'old');
  assert.equal(ownerOf(claims, 's', 'b'), 'b-same');
  assert.equal(ownerOf(claims, 's', 'c'), 'young');
  assert.equal(ownerOf(claims, 'u', 'c'), undefined);
});

test('three fights in ten minutes are a contest; its pauses grow and are forgotten after a calm day', () => {
  const minute = 60_000;
  let contest = noteFight(noteFight(NO_CONTEST, 0), 4 * minute);
  assert.ok(!isContested(contest, 4 * minute));
  assert.ok(!isContested(noteFight(contest, 15 * minute), 15 * minute), 'they lie too far apart');
  contest = noteFight(contest, 9 * minute);
  assert.ok(isContested(contest, 18 * minute));
  assert.ok(!isContested(contest, 19 * minute));
  for (const at of [20, 21, 22]) contest = noteFight(contest, at * minute);
  assert.equal(contest.backOffUntilMs, 42 * minute);
  for (const at of [3000, 3001, 3002]) contest = noteFight(contest, at * minute);
  assert.equal(contest.backOffUntilMs, 3012 * minute);
});

test('pauses double up to their limit', () => {
  const at = (tries: number) => backoffMs(tries, { firstMs: 100, maxMs: 1000, random: () => 0 });
  assert.deepEqual([1, 2, 3, 4, 5, 500].map(at), [100, 200, 400, 800, 1000, 1000]);
  assert.equal(backoffMs(1, { firstMs: 100, random: () => 1 }), 75);
});

test('one node at a time: what was begun first, and never while another is down', () => {
  const node = (name: string, changes: Partial<NodeView> = {}): NodeView => ({
    name,
    ready: true,
    unreachable: false,
    unfinished: false,
    done: false,
    ...changes,
  });
  assert.equal(pickNode([node('a'), node('b', { unfinished: true })])?.name, 'b');
  assert.equal(pickNode([node('a', { done: true }), node('b')])?.name, 'b');
  assert.equal(pickNode([node('a', { unreachable: true, ready: false }), node('b')])?.name, 'b');
  assert.equal(pickNode([node('a', { done: true })]), undefined);
  assert.equal(gateFor('a', [node('a'), node('b'), node('c')], false), undefined);
  assert.match(
    gateFor('a', [node('a', { ready: false }), node('b', { ready: false })], false) ?? '',
    /of b$/u,
  );
  assert.match(gateFor('a', [node('a')], false) ?? '', /allowDowntime/u);
  assert.equal(gateFor('a', [node('a')], true), undefined);
});
