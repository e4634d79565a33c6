import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { buildEnvironment } from './environment.ts';
import { judgeEnd } from './exit-code.ts';
import { DEFAULT_IGNORED_SUFFIXES, hasIgnoredSuffix } from './ignored-suffixes.ts';

describe('exit codes', () => {
  test('every code there is', () => {
    for (let code = 0; code <= 255; code++) {
      const wanted = code === 0 ? 'ok' : code >= 32 && code <= 63 ? 'warning' : 'error';
      assert.equal(judgeEnd({ code, signal: null }).status, wanted, String(code));
    }
  });

  test('the reserved ones say that they are', () => {
    assert.deepEqual(judgeEnd({ code: 64, signal: null }), {
      status: 'error',
      reason: 'exit code 64, which is reserved',
    });
    assert.equal(judgeEnd({ code: 63, signal: null }).reason, 'exit code 63');
  });

  for (const signal of ['SIGSEGV', 'SIGKILL', 'SIGTERM', 'SIGPIPE'] as const) {
    test(`${signal} is an error`, () => {
      assert.deepEqual(judgeEnd({ code: null, signal }), { status: 'error', reason: `ended by ${signal}` });
    });
  }
});

describe('ignored suffixes', () => {
  const names: readonly (readonly [string, boolean])[] = [
    ['10-hook', false],
    ['10-hook.sh', false],
    ['10-hook.disabled', true],
    ['10-hook.DISABLED', true],
    ['10-hook_Disabled', true],
    ['10-hook.sh~', true],
    ['.10-hook.swp', true],
    ['10-hook.dpkg-dist', true],
    ['10-hook.RPMNEW', true],
    ['10-disabled', false],
    ['disabled.10', false],
    ['.disabled', true],
  ];
  for (const [name, ignored] of names) {
    test(`${name} ${ignored ? 'is' : 'is not'} left out`, () => {
      assert.equal(hasIgnoredSuffix(name, DEFAULT_IGNORED_SUFFIXES), ignored);
    });
  }

  test('those of the operator take the place of the defaults', () => {
    assert.equal(hasIgnoredSuffix('hook.OFF', ['.off']), true);
    assert.equal(hasIgnoredSuffix('hook.disabled', ['.off']), false);
    assert.equal(hasIgnoredSuffix('hook', []), false);
  });
});

describe('the environment', () => {
  const own = { PATH: '/bin', HOME: '/var/hooks', NATS_NKEY_SEED: 'hidden', TZ: 'UTC', LD_PRELOAD: '/x.so' };

  test('is clean: three variables, those allowed, the parameters', () => {
    assert.deepEqual(buildEnvironment({ RUDDER_NODE_ID: 'web-1' }, own, ['TZ', 'ABSENT']), {
      PATH: '/bin',
      HOME: '/var/hooks',
      LANG: 'C.UTF-8',
      TZ: 'UTC',
      RUDDER_NODE_ID: 'web-1',
    });
  });

  test('has a PATH, a HOME and a LANG where the runner has none', () => {
    assert.deepEqual(Object.keys(buildEnvironment({}, {}, [])), ['PATH', 'HOME', 'LANG']);
  });

  test('a parameter is stronger than an allowed variable', () => {
    assert.equal(buildEnvironment({ TZ: 'from the event' }, own, ['TZ']).TZ, 'from the event');
  });

  const texts = ['', ' ', 'a\nb', '"$(id)" `id` \\', 'schlüssel ✓', 'x'.repeat(131_000)];
  for (const text of texts) {
    test(`carries ${JSON.stringify(text.slice(0, 20))} as it is`, () => {
      assert.equal(buildEnvironment({ RUDDER_X: text }, own, []).RUDDER_X, text);
    });
  }

  const refused: readonly (readonly [string, string, string])[] = [
    ['a NUL', 'RUDDER_X', 'a\0b'],
    ['a name with =', 'RUDDER=X', 'a'],
    ['an empty name', '', 'a'],
    ['a name that begins with a digit', '1X', 'a'],
    ['more than Linux takes', 'RUDDER_X', 'x'.repeat(131_072)],
  ];
  for (const [what, name, value] of refused) {
    test(`refuses ${what}`, () => {
      assert.throws(() => buildEnvironment({ [name]: value }, own, []), { code: 'bad_request' });
    });
  }
});
