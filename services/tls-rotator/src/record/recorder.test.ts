import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Condition, ConditionType, NodePhase, Status } from '../status.ts';
import { notesOf } from './recorder.ts';

const condition = (type: ConditionType, status: 'True' | 'False', reason: string): Condition => ({
  ...{ type, status, reason, message: '', observedGeneration: 1, lastTransitionTime: '' },
});
const statusOf = (degraded: string, phase: NodePhase, updated = 0): Status => ({
  targets: { updated, unchanged: 0, created: 0, missing: 0, failed: 0, contested: 0, conflict: 0 },
  nodes: [{ name: 'n', address: 'a', phase }],
  conditions: [
    condition('Degraded', degraded === '' ? 'False' : 'True', degraded),
    condition('SecretsSynced', 'True', 'Synced'),
  ],
});
const eventsOf = (before: Status, after: Status) =>
  notesOf(before, after).map(({ reason, event }) => event ?? reason);

test('what has changed is told once, and nothing else', () => {
  const calm = statusOf('', 'Done');
  assert.deepEqual(eventsOf(calm, calm), []);
  assert.deepEqual(eventsOf(calm, statusOf('SourceInvalid', 'Done')), ['tls.source_refused']);
  assert.deepEqual(eventsOf(statusOf('SourceInvalid', 'Done'), statusOf('SourceInvalid', 'Done')), []);
  assert.deepEqual(eventsOf(calm, statusOf('RolloutStopped', 'Failed')), ['tls.rollout_stopped']);
  assert.deepEqual(eventsOf(calm, statusOf('ExpiresSoon', 'Done')), ['tls.expires_soon']);
  assert.deepEqual(eventsOf(calm, statusOf('TargetsNotEqual', 'Done')), ['TargetsNotEqual']);
  assert.deepEqual(eventsOf(statusOf('ExpiresSoon', 'Done'), calm), ['tls.recovered']);
  assert.deepEqual(eventsOf(statusOf('', 'Starting'), calm), ['tls.node_rotated']);
  assert.deepEqual(eventsOf(statusOf('', 'Pending'), calm), [], 'it needed nothing');
  assert.deepEqual(eventsOf(calm, statusOf('', 'Done', 3)), ['tls.secrets_synced']);
});
