import assert from 'node:assert/strict';
import { rename, symlink, unlink, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { tempDir } from '../../../../test/support/temp.ts';
import { waitFor } from '../../../../test/support/wait-for.ts';
import { tellingWatch } from '../../test/support.ts';
import { openPolicySource, type PolicySource } from './source.ts';

const policy = (level: string) => `apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: ${level}}]\n`;
const request = {
  ...{ user: undefined, verb: 'get', isResource: false, apiGroup: '', resource: '', subresource: '' },
  ...{ namespace: '', name: '', path: '/' },
};
const levelOf = (source: PolicySource) => source.evaluate(request).level;

async function prepare(level = 'Request') {
  const dir = await tempDir('policy');
  const file = path.join(dir.path, 'policy.yaml');
  await writeFile(file, policy(level));
  const { watch, told } = tellingWatch();
  const open = (pollMs = 10) => openPolicySource({ file, strict: false, watch, pollMs });
  return { file, open, watch, told, dir: dir.path, [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose]() };
}

test('a changed file is read by itself, a replaced one and a link that points elsewhere too', async () => {
  await using at = await prepare();
  await using source = at.open();
  assert.equal(levelOf(source), 'Request');
  await writeFile(at.file, policy('Metadata'));
  await waitFor('the change', () => levelOf(source) === 'Metadata');
  const other = path.join(at.dir, 'other.yaml');
  await writeFile(other, policy('RequestResponse'));
  await rename(other, at.file);
  await waitFor('the replacement', () => levelOf(source) === 'RequestResponse');
  await writeFile(other, policy('None'));
  await symlink(other, `${at.file}.new`);
  await rename(`${at.file}.new`, at.file);
  await waitFor('the link', () => levelOf(source) === 'None');
});

test('one that is being written is read when it is whole, though its beginning is a policy too', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  await using at = await prepare();
  await using source = at.open(1000);
  const begun = 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: None, verbs: [watch]}\n';
  await writeFile(at.file, begun);
  t.mock.timers.tick(1000);
  await writeFile(at.file, `${begun}- {level: Metadata}\n`);
  t.mock.timers.tick(1000);
  assert.equal(levelOf(source), 'Request');
  t.mock.timers.tick(1000);
  assert.equal(levelOf(source), 'Metadata');
  const loads = at.told.filter(({ what }) => what === 'policyLoaded').map(({ fields }) => fields);
  assert.deepEqual(
    loads,
    [1, 2].map((rules) => ({ rules, warnings: [] })),
  );
});

/** At once, as an operator should: one that is being written is a bad file for a moment. */
async function replaceFile(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
}

test('a bad file, and a missing one, change nothing until there is a good one', async () => {
  await using at = await prepare();
  await using source = at.open();
  const refusals = () => at.told.filter(({ what }) => what === 'policyRefused').length;
  await replaceFile(at.file, 'rules: []');
  await waitFor('the refusal', () => refusals() === 1);
  assert.equal(levelOf(source), 'Request');
  await unlink(at.file);
  await waitFor('the second refusal', () => refusals() === 2);
  assert.equal(levelOf(source), 'Request');
  await replaceFile(at.file, policy('Metadata'));
  await waitFor('the good one', () => levelOf(source) === 'Metadata');
  assert.equal(refusals(), 2);
});

test('SIGHUP reads it, and a disposed source hears nothing', async () => {
  await using at = await prepare();
  const before = process.listenerCount('SIGHUP');
  const source = at.open(3_600_000);
  await writeFile(at.file, policy('Metadata'));
  process.kill(process.pid, 'SIGHUP');
  await waitFor('the change', () => levelOf(source) === 'Metadata');
  await source[Symbol.asyncDispose]();
  assert.equal(process.listenerCount('SIGHUP'), before);
});

test('a touched file with the same text is no new policy', async () => {
  await using at = await prepare();
  await using source = at.open(3_600_000);
  await utimes(at.file, 1, 1);
  assert.equal(source.reload(), false);
  assert.equal(at.told.filter(({ what }) => what === 'policyLoaded').length, 1);
});

test('there is nothing to begin with: the service does not start', async () => {
  await using at = await prepare('wrong');
  assert.throws(() => at.open(), { code: 'misconfigured', message: /rules\[0\]\.level/u });
  await unlink(at.file);
  assert.throws(() => at.open(), { code: 'misconfigured' });
});

test('without a file everything is recorded at Metadata', async () => {
  await using at = await prepare();
  await using source = openPolicySource({ file: undefined, strict: true, watch: at.watch });
  assert.deepEqual(source.evaluate(request), { level: 'Metadata', omitStages: [], omitManagedFields: false });
});
