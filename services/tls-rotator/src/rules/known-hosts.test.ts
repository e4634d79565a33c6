import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type TempDir, tempDir } from '../../../../test/support/temp.ts';
import { runTool } from '../../test/pki.ts';
import { checkHostKey, hostMatches, lookupName, parseKnownHosts, pinnedTypes } from './known-hosts.ts';

const keygen = 'ssh-keygen';

describe('known_hosts', () => {
  let dir: TempDir;
  const keys: Record<string, string> = {};
  before(async () => {
    dir = await tempDir('known-hosts');
    for (const [name, type] of [
      ['a', 'ed25519'],
      ['b', 'ed25519'],
      ['r', 'rsa'],
      ['e', 'ecdsa'],
    ] as const) {
      const file = path.join(dir.path, name);
      runTool('ssh-keygen', '-q', '-t', type, '-N', '', '-f', file);
      keys[name] = readFileSync(`${file}.pub`, 'utf8').split(' ').slice(0, 2).join(' ');
    }
  });
  after(() => dir[Symbol.asyncDispose]());

  const blob = (name: string) => Buffer.from(keys[name]?.split(' ')[1] ?? '', 'base64');
  const check = (text: string, host: string, key: string, port = 22) => {
    const verdict = checkHostKey(parseKnownHosts(text), { host, port, key: blob(key) });
    return verdict.ok ? 'ok' : verdict.why;
  };

  test('is matched as ssh-keygen -F matches it', () => {
    const file = path.join(dir.path, 'known_hosts');
    const fields = [
      'node-1',
      'NODE-1',
      'node-1,10.0.0.1',
      'node-*',
      'node-?',
      '*,!node-1',
      '!node-1,*',
      'node-1,!10.0.0.*',
      '[node-1]:2222',
      '[node-*]:2222',
      '[10.0.0.1]:*',
      '*',
      '10.0.0.?',
      'node-1.example',
      '?ode-1',
      'n*e*1',
      '*-1*',
      '[fd00::1]:2222',
      'fd00::1',
      '!*',
      '[node-1]:22',
    ];
    const names: [string, number][] = [
      ['node-1', 22],
      ['Node-1', 22],
      ['node-12', 22],
      ['10.0.0.1', 22],
      ['node-1', 2222],
      ['10.0.0.1', 2222],
      ['node-1.example', 22],
      ['fd00::1', 22],
      ['fd00::1', 2222],
    ];
    let found = 0;
    for (const field of fields) {
      for (const hashed of [false, true]) {
        writeFileSync(file, `${field} ${keys.a}\n`);
        if (hashed) {
          runTool('ssh-keygen', '-q', '-H', '-f', file);
          if (!readFileSync(file, 'utf8').startsWith('|1|')) continue;
        }
        const lines = parseKnownHosts(readFileSync(file, 'utf8'));
        for (const [host, port] of names) {
          const name = lookupName(host, port);
          const theirs = spawnSync(keygen, ['-F', name, '-f', file]).status === 0;
          const ours = lines.some((line) => hostMatches(line.hosts, name));
          assert.equal(ours, theirs, `${field} against ${name}`);
          found += theirs ? 1 : 0;
        }
      }
    }
    assert.ok(found > 30);
  });

  test('of several lines: any pinned key will do, a key of another type is new, one of the same type changed', () => {
    const text = `node ${keys.a}\nnode ${keys.r}\n`;
    assert.equal(check(text, 'node', 'a'), 'ok');
    assert.equal(check(text, 'node', 'r'), 'ok');
    assert.equal(check(text, 'node', 'b'), 'changed');
    assert.equal(check(text, 'node', 'e'), 'new');
    assert.equal(check(text, 'other', 'a'), 'new');
    assert.deepEqual(pinnedTypes(parseKnownHosts(text), 'node', 22), ['ssh-ed25519', 'ssh-rsa']);
  });

  test('a revoked key is refused wherever it stands, and no other', () => {
    for (const text of [
      `node ${keys.a}\n@revoked * ${keys.a}\n`,
      `@revoked node ${keys.a}\nnode ${keys.a}\n`,
    ]) {
      assert.equal(check(text, 'node', 'a'), 'revoked');
    }
    assert.equal(check(`@revoked * ${keys.b}\nnode ${keys.a}\n`, 'node', 'a'), 'ok');
    assert.equal(check(`@revoked other ${keys.a}\nnode ${keys.a}\n`, 'node', 'a'), 'ok');
    assert.equal(check(`@revoked node ${keys.a}\n[node]:22 ${keys.a}\n`, 'node', 'a', 2222), 'revoked');
  });

  test("the key of a certificate authority is not a host's own", () => {
    const text = `@cert-authority * ${keys.a}\n`;
    assert.equal(check(text, 'node', 'a'), 'new');
    assert.deepEqual(pinnedTypes(parseKnownHosts(text), 'node', 22), []);
  });

  test('for another port a line without it will do, unless one with it knows better', () => {
    assert.equal(check(`node ${keys.a}\n`, 'node', 'a', 2222), 'ok');
    assert.equal(check(`[node]:2222 ${keys.b}\nnode ${keys.a}\n`, 'node', 'a', 2222), 'changed');
    assert.equal(check(`[node]:2222 ${keys.a}\n`, 'node', 'a', 22), 'new');
    assert.equal(check(`[node]:2222 ${keys.a}\n`, 'node', 'a', 2222), 'ok');
  });

  test('lines that OpenSSH passes over pin nothing', () => {
    const [type, encoded] = (keys.a ?? '').split(' ');
    const bad = [
      '',
      '# node',
      `node ssh-rsa ${encoded}`,
      `@unknown node ${keys.a}`,
      `node ${type}`,
      `node ${type} %%%`,
      `node 1024 65537 1234`,
      '@revoked',
      `|2|x|y ${keys.a}`,
    ];
    for (const line of bad) assert.equal(check(`${line}\n`, 'node', 'a'), 'new', line);
    assert.equal(check(`\t node\t${type}  ${encoded} a comment\r\n`, 'node', 'a'), 'ok');
  });
});
