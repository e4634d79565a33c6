import assert from 'node:assert/strict';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import {
  CHAIN_START,
  formatHeader,
  formatRecord,
  JOURNAL_FORMAT,
  namesOf,
  nextHead,
} from '@colonnade/audit-log';
import { startWebhook, writeKubeconfig } from '../../../test/support/fake-webhook.ts';
import { bundledCli, type Cli, privateFile } from './support.ts';

const COUNT = 30;
const ROTATED = '2026-01-31T12-00-00.000';

/** Event `e7` stands at sequence 7: every third is a `get`, the others are `create`, with a body. */
function eventOf(seq: number): string {
  const verb = seq % 3 === 0 ? 'get' : 'create';
  const time = `2026-01-31T12:00:${String(seq).padStart(2, '0')}.000000Z`;
  const event = {
    ...{ annotations: { 'colonnade/floor': seq === 12 ? 'true' : 'false' } },
    ...{ apiVersion: 'audit.k8s.io/v1', auditID: `e${seq}`, kind: 'Event', level: 'Request' },
    ...{ objectRef: { apiGroup: 'colonnade', resource: 'pillars', subresource: 'reveal' } },
    ...{ requestObject: { name: `p${seq}` }, stage: 'ResponseComplete', stageTimestamp: time },
    ...{ user: { username: 'ann' }, verb },
  };
  return JSON.stringify(event);
}

/** A log as audit-sink leaves it: the first twenty records in a rotated and compressed file, the others in the one being written. */
async function writeLog(log: string): Promise<{ gz: string }> {
  const names = namesOf(log);
  await mkdir(names.dir, { recursive: true });
  const rotated = names.rotatedAt(ROTATED);
  const part = { head: CHAIN_START, seq: 0, previous: '' };
  for (const [file, last] of [
    [rotated, 20],
    [log, COUNT],
  ] as const) {
    const header = {
      ...{ format: JOURNAL_FORMAT, stream: 'made', seq: part.seq, stored_at_ns: '0' },
      ...{ head: part.head, inode: '1:1', previous: part.previous },
    };
    let journal = formatHeader(header);
    let text = '';
    while (part.seq < last) {
      part.seq += 1;
      const line = eventOf(part.seq);
      text += `${line}\n`;
      const record = { kind: 'e', seq: part.seq, storedAtNs: BigInt(part.seq) } as const;
      part.head = nextHead(part.head, record, Buffer.from(line));
      journal += formatRecord({ ...record, end: Buffer.byteLength(text), head: part.head });
    }
    await writeFile(file, text);
    await writeFile(names.journalOf(file), journal);
    part.previous = path.basename(names.journalOf(file));
  }
  await writeFile(`${rotated}.gz`, gzipSync(await readFile(rotated)));
  await rm(rotated);
  return { gz: `${rotated}.gz` };
}

const ids = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => `e${from + i}`);

describe('colonnade audit, over rotated and compressed files', () => {
  const owned = new AsyncDisposableStack();
  let cli: Cli;
  let webhook: Awaited<ReturnType<typeof startWebhook>>;
  let config: string;
  let log: string;
  before(async () => {
    cli = owned.use(await bundledCli());
    webhook = owned.use(await startWebhook());
    config = await writeKubeconfig(cli.dir, { server: webhook.url });
    log = path.join(cli.dir, 'log', 'audit.log');
    await writeLog(log);
  });
  after(() => owned.disposeAsync());

  const replay = async (args: readonly string[], env: Record<string, string> = {}, from = log) => {
    webhook.taken.length = 0;
    const command = ['audit', 'replay', '--log', from, '--webhook-config', config, '--qps', '1000', '--json'];
    const ended = await cli.pipe([...command, ...args], { env });
    return { ...ended, result: ended.stdout === '' ? {} : (JSON.parse(ended.stdout) as object) };
  };

  test('replay sends the range of a gap record and nothing else, in its order', async () => {
    const { code, stderr } = await replay(['--from-seq', '18', '--to-seq', '23']);
    assert.equal(code, 0, stderr);
    assert.deepEqual(webhook.ids(), ids(18, 23));
    await replay(['--from-seq', '28']);
    assert.deepEqual(webhook.ids(), ids(28, COUNT));
    await replay(['--to-seq', '2']);
    assert.deepEqual(webhook.ids(), ids(1, 2));
    await replay(['--from-seq', '18', '--to-seq', '23', '--verb', 'get']);
    assert.deepEqual(webhook.ids(), ['e18', 'e21']);
  });

  test('a range that is none is refused before anything is sent', async () => {
    for (const args of [
      ['--from-seq', 'x'],
      ['--from-seq', '-1'],
      ['--from-seq', '5', '--to-seq', '4'],
    ]) {
      const { code, stderr } = await replay(args);
      assert.equal(code, 2, stderr);
      assert.deepEqual(webhook.ids(), []);
    }
  });

  test('replay gives the webhook no more than its policy does: an option, or as audit-sink is told it', async () => {
    const policy = await privateFile(
      cli.dir,
      'policy.yaml',
      'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: None, verbs: [get]}\n- {level: Metadata}\n',
    );
    // e12 is a get with a floor.
    const wanted = ['e10', 'e11', 'e12', 'e13', 'e14'];
    for (const [args, env] of [
      [['--policy', policy], {}],
      [[], { AUDIT_WEBHOOK_POLICY_FILE: policy }],
    ] as const) {
      const { result, code } = await replay(['--from-seq', '9', '--to-seq', '15', ...args], env);
      assert.equal(code, 0);
      assert.deepEqual(webhook.ids(), wanted);
      assert.ok(webhook.taken.every((event) => (event as { level: string }).level === 'Metadata'));
      assert.ok(webhook.taken.every((event) => !('requestObject' in (event as object))));
      assert.equal((result as { filtered: number }).filtered, 2);
    }
    const bad = await privateFile(
      cli.dir,
      'bad.yaml',
      'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []\n',
    );
    for (const file of [bad, path.join(cli.dir, 'none.yaml')]) {
      const { code, stderr } = await replay(['--policy', file]);
      assert.equal(code, 2);
      assert.ok(stderr.includes(file), stderr);
      assert.deepEqual(webhook.ids(), []);
    }
  });

  test('a compressed file that is cut is named, by every command, and none takes the rest for the whole', async () => {
    const cut = path.join(cli.dir, 'cut', 'audit.log');
    const { gz } = await writeLog(cut);
    const bytes = await readFile(gz);
    await writeFile(gz, bytes.subarray(0, bytes.length / 2));
    const name = path.basename(gz, '.gz');
    const verified = await cli.pipe(['audit', 'verify', '--log', cut, '--offline', '--json']);
    assert.equal(verified.code, 8, verified.stderr);
    const { fault } = JSON.parse(verified.stdout) as { fault: { what: string; file: string } };
    assert.deepEqual([fault.what, fault.file], ['file_unreadable', name]);
    for (const ended of [
      await cli.pipe(['audit', 'find', '--log', cut, '--verb', 'create']),
      await cli.pipe(['audit', 'tail', '--log', cut, '--lines', '100', '--once']),
      await replay([], {}, cut),
      await replay(['--from-seq', '1'], {}, cut),
    ]) {
      assert.equal(ended.code, 3, ended.stderr);
      assert.ok(ended.stderr.includes(name), ended.stderr);
    }
    // What does not need the cut file is found all the same.
    const last = await cli.pipe(['audit', 'tail', '--log', cut, '--lines', '2', '--once', '--json']);
    assert.equal(last.code, 0, last.stderr);
    assert.deepEqual(last.stdout.match(/"e\d+"/gu), ['"e29"', '"e30"']);
  });

  test('what no journal vouches for is neither shown nor sent, and that is said', async () => {
    const forged = path.join(cli.dir, 'forged', 'audit.log');
    await writeLog(forged);
    await writeFile(namesOf(forged).rotatedAt('2020-01-01T00-00-00.000'), `${eventOf(31)}\n`);
    const found = await cli.pipe(['audit', 'find', '--log', forged, '--json']);
    assert.deepEqual([found.code, found.stdout.trimEnd().split('\n').length], [8, COUNT]);
    assert.match(found.stderr, /audit-2020-01-01T00-00-00\.000\.log has no journal/u);
    const sent = await replay([], {}, forged);
    assert.deepEqual([sent.code, webhook.ids().length], [8, COUNT]);
    const verified = await cli.pipe(['audit', 'verify', '--log', forged, '--offline', '--json']);
    assert.equal(verified.code, 8);
    assert.equal((JSON.parse(verified.stdout) as { fault: { what: string } }).fault.what, 'file_unvouched');
  });

  test('a log that is a folder is named, and nothing is taken for whole', async () => {
    const folder = path.join(cli.dir, 'folder', 'audit.log');
    await writeLog(folder);
    await rm(folder);
    await mkdir(folder);
    const verified = await cli.pipe(['audit', 'verify', '--log', folder, '--offline']);
    assert.equal(verified.code, 8, verified.stderr);
    assert.match(verified.stdout, /file_unreadable in audit\.log/u);
    const found = await cli.pipe(['audit', 'find', '--log', folder]);
    assert.deepEqual([found.code, found.stderr.includes(folder)], [3, true], found.stderr);
  });

  test('find takes a subresource with its resource, as a policy names it', async () => {
    const find = async (resource: string) =>
      (await cli.pipe(['audit', 'find', '--log', log, '--resource', resource, '--json'])).stdout;
    assert.equal((await find('pillars/reveal')).split('\n').length, COUNT + 1);
    assert.equal((await find('pillars')).split('\n').length, COUNT + 1);
    assert.equal(await find('pillars/versions'), '');
  });
});
