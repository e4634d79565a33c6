import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import type { CloudEvent } from '@colonnade/contracts';
import { canonicalText, fromPlain, parseValue } from '@colonnade/value';
import { tempDir } from '../../../../test/support/temp.ts';
import { policyFolders } from '../policy-folders.ts';
import { contentOf, policyOf } from './content.ts';
import { repairFolders, swapFolders, writeNext } from './folders.ts';
import { infoFiles, nodeIdsText, writeNodeIds } from './info-files.ts';
import { touchedBy } from './touch.ts';

describe('whom an event touches', () => {
  const env = 'minion_id:web-1;master:east';
  const web = { kind: 'minion', master: 'east', id: 'web-1' };
  const collection = { tgt_type: 'collection', tgt_id: 'web', pillarenv: 'collection:web;user:ann' };
  const cases: readonly (readonly [string, object, ...touched: object[]])[] = [
    ['pillar.updated', { tgt_type: 'root', tgt_id: 'root', pillarenv: 'base' }, { kind: 'all' }],
    [
      'pillar.created',
      { tgt_type: 'collection', tgt_id: 'web', pillarenv: 'collection:web;user:ann' },
      { kind: 'collection', id: 'web' },
    ],
    [
      'pillar.deleted',
      { tgt_type: 'minion', tgt_id: 'web-1', pillarenv: env },
      { kind: 'minion', master: 'east', id: 'web-1' },
    ],
    ['pillar.created', { tgt_type: 'task', tgt_id: 't', pillarenv: 'task:t' }],
    ['pillar.created', { pid: 'p' }, { kind: 'all' }],
    [
      'pillar.moved',
      { tgt_type: 'minion', tgt_id: 'web-1', pillarenv: env, from: { tgt_type: 'root' } },
      { kind: 'all' },
    ],
    [
      'pillar.moved',
      { tgt_type: 'minion', tgt_id: 'web-1', pillarenv: env, from: collection },
      ...[{ kind: 'collection', id: 'web' }, web],
    ],
    [
      'pillar.moved',
      { ...collection, from: { tgt_type: 'root', tgt_id: 'root', pillarenv: 'base' } },
      { kind: 'all' },
    ],
    ['minion.moved', { master: 'west', id: 'web-1', from_master: 'east' }, { ...web, master: 'west' }],
    ['collection.updated', { id: 'web' }, { kind: 'collection', id: 'web' }],
    ['minion.updated', { master: 'east', id: 'web-1' }, { kind: 'minion', master: 'east', id: 'web-1' }],
    ['minion.deleted', { master: 'east', id: 'web-1' }, { kind: 'minion', master: 'east', id: 'web-1' }],
    ['minion.inventory-received', { master: 'east', id: 'web-1' }],
    ['master.updated', { id: 'east' }],
    ['key.activated', { kid: 'k' }],
    [
      'pillar.renamed',
      { tgt_type: 'minion', tgt_id: 'web-1', pillarenv: env, from: { name: 'old', pillarenv: env } },
      web,
    ],
    [
      'pillar.moved',
      {
        tgt_type: 'task',
        tgt_id: 't',
        pillarenv: 'task:t',
        from: { tgt_type: 'minion', tgt_id: 'web-1', pillarenv: env },
      },
      web,
    ],
    [
      'estate.imported',
      { scopes: [env, 'collection:web;user:ann', 'task:t', 'task_tpl:t;user:ann'] },
      ...[web, { kind: 'collection', id: 'web' }],
    ],
    ['estate.imported', { scopes: [env, 'base'] }, { kind: 'all' }],
    ['estate.imported', { scopes: ['prod'] }, { kind: 'all' }],
    ['estate.imported', { scopes: 7 }, { kind: 'all' }],
  ];
  for (const [type, data, ...touched] of cases) {
    test(`${type} ${JSON.stringify(data)}`, () => {
      const event = { type: `colonnade.${type}.v1`, data: fromPlain(data) } as CloudEvent;
      assert.deepEqual(touchedBy(event), touched);
    });
  }
});

describe('whether policies are the same', () => {
  const of = (text: string, ...secrets: string[]) => policyOf({ pillar: parseValue(text), secrets }).digest;
  const sealed = (kid: string, ct: string, nonce = 'n', wrapped = 'w') =>
    `{"s":{"$enc":{"v":1,"alg":"A","kid":"${kid}","nonce_b64":"${nonce}","ct_b64":"${ct}","dek_wrapped_b64":"${wrapped}"}}}`;

  test('the order of names does not count, kinds of numbers do', () => {
    assert.equal(of('{"a":1,"b":2}'), of('{"b":2,"a":1}'));
    assert.notEqual(of('{"a":1}'), of('{"a":1.0}'));
    assert.notEqual(of('{"a":1}'), of('{"a":1,"b":null}'));
  });

  test('text and digest are those of the canonical texts, whatever the names', () => {
    const pillar = parseValue(
      `{"b":{"z":1,"a":[1.0,null]},"\\ud83d\\ude00":1,"\uff5e":2,"10":3,"9":"x","":{},"q\\"":true,${sealed('k', 'c').slice(1)}`,
    );
    for (const secrets of [[], ['s'], ['s', 'b', 'absent']]) {
      const { text, digest } = policyOf({ pillar, secrets });
      assert.equal(text, `${canonicalText(pillar)}\n`);
      const content = canonicalText(contentOf(pillar as never, secrets));
      assert.equal(digest, createHash('sha256').update(content).digest('hex'));
    }
    assert.equal(policyOf({ pillar: fromPlain({}), secrets: [] }).text, '{}\n');
  });

  test('a rewrap changes nothing, another secret does, and so does becoming one', () => {
    const before = of(sealed('k1', 'c'), 's');
    assert.equal(of(sealed('k2', 'c', 'n2', 'w2'), 's'), before);
    assert.notEqual(of(sealed('k1', 'd'), 's'), before);
    assert.notEqual(of('{"s":"c"}'), before);
    assert.notEqual(of(sealed('k1', 'c')), before);
  });
});

describe('the folders of a minion', () => {
  const read = async (folder: string) => {
    try {
      return await readFile(path.join(folder, 'pillar.json'), 'utf8');
    } catch {
      return undefined;
    }
  };
  const text = (n: number) => policyOf({ pillar: fromPlain({ n }), secrets: [] }).text;

  test('next ones replace those in force, which become the archive', async () => {
    await using dir = await tempDir('folders');
    const folders = policyFolders(dir.path, 'east', 'web-1');
    for (const n of [1, 2, 3]) {
      await writeNext(folders, text(n));
      await swapFolders(folders);
    }
    assert.deepEqual(
      [await read(folders.current), await read(folders.archive), await read(folders.next)],
      ['{"n":3}\n', '{"n":2}\n', undefined],
    );
  });

  test('with none in force, those in the archive stay', async () => {
    await using dir = await tempDir('folders');
    const folders = policyFolders(dir.path, 'east', 'web-1');
    await writeNext({ ...folders, next: folders.archive }, text(1));
    await writeNext(folders, text(2));
    await swapFolders(folders);
    assert.deepEqual([await read(folders.current), await read(folders.archive)], [text(2), text(1)]);
  });

  /** What is there when it is cut short, as current, next, archive; and what is in force after the repair. */
  const cuts: readonly (readonly [string, readonly (number | undefined)[], number | undefined])[] = [
    ['before anything', [1, undefined, 0], 1],
    ['while the next ones wait for their hooks', [1, 2, 0], 1],
    ['while the first ones ever wait', [undefined, 2, undefined], undefined],
    ['after the archive was removed', [1, 2, undefined], 1],
    ['between the two renames', [undefined, 2, 1], 2],
    ['between them, and the next ones are lost', [undefined, undefined, 1], 1],
    ['after both', [2, undefined, 1], 2],
  ];
  for (const [when, [current, next, archive], inForce] of cuts) {
    test(`cut short ${when}: whole policies are in force, and none are left over`, async () => {
      await using dir = await tempDir('folders');
      const folders = policyFolders(dir.path, 'east', 'web-1');
      for (const [folder, n] of [
        [folders.current, current],
        [folders.next, next],
        [folders.archive, archive],
      ] as const) {
        if (n === undefined) continue;
        await mkdir(folder, { recursive: true });
        await writeFile(path.join(folder, 'pillar.json'), text(n));
      }
      await repairFolders(folders);
      assert.equal(await read(folders.current), inForce === undefined ? undefined : text(inForce));
      const left: string[] = await readdir(path.dirname(folders.current)).catch(() => []);
      assert.ok(!left.includes('rules.new'));
    });
  }
});

test('the file of node ids is bash, whatever the ids hold', () => {
  const ids = ["it's", 'a b', '$(exit 9)', '`x`', '"q"', 'é', '-n', '*'];
  const script = `${nodeIdsText('2026-01-31T12:00:00.000Z', ['east'], ids)}
    printf '%s\\n' "\${#RUDDER_NODE_IDS[@]}" "\${RUDDER_NODE_IDS[0]}" "\${RUDDER_UPDATED_NODE_IDS[@]}"`;
  const lines = execFileSync('bash', [], { input: script, encoding: 'utf8' }).split('\n').slice(0, -1);
  assert.deepEqual(lines, [String(ids.length + 1), 'east', ...ids]);
  const none = `${nodeIdsText('x', [], [])}\necho "\${#RUDDER_NODE_IDS[@]}"`;
  assert.equal(execFileSync('bash', [], { input: none, encoding: 'utf8' }), '0\n');
});

test('the files about generations are there at every moment, whole, and the one before is kept', async () => {
  await using dir = await tempDir('info');
  const files = infoFiles(dir.path);
  const textOf = (n: number) => `${String(n).padStart(4, '0')}\n`.repeat(2000);
  await writeNodeIds(files, textOf(0));
  let done = false;
  const reading = (async () => {
    let looks = 0;
    for (; !done || looks < 20; looks++) {
      const text = await readFile(files.nodeIds, 'utf8');
      assert.equal(text, textOf(Number(text.slice(0, 4))));
    }
  })();
  for (let n = 1; n <= 50; n++) await writeNodeIds(files, textOf(n));
  done = true;
  await reading;
  assert.equal(await readFile(`${files.nodeIds}.old`, 'utf8'), textOf(49));
  assert.deepEqual((await readdir(path.dirname(files.nodeIds))).sort(), [
    'last-updated-nodeids',
    'last-updated-nodeids.old',
  ]);
});
