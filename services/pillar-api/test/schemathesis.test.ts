import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ensureVenv } from '../../../test/support/python.ts';
import { stackForTests, type TestStack } from '../../../test/support/stack.ts';
import { plain, sendPlain } from './support.ts';

/** Pinned: another release makes other requests. */
const SCHEMATHESIS = 'schemathesis==4.32.5';
const SEED = '4';
/** Of one operation; and of one role's whole run, seconds. */
const MAX_EXAMPLES = '6';
const MAX_TIME_S = '45';

/**
 * What an answer may not be. Left out: `positive_data_acceptance` (whether a collection exists is no matter of schemas),
 * `ensure_resource_availability` and `use_after_free` (other requests of the run delete what one made), and
 * `allow_header_conformance` (`/pillars/list` is a `/pillars/{pid}` too, and takes its methods).
 */
const CHECKS = [
  ...['not_a_server_error', 'status_code_conformance', 'content_type_conformance'],
  ...['response_headers_conformance', 'response_schema_conformance', 'negative_data_rejection'],
  ...['unsupported_method', 'ignored_auth'],
];
/** A stream of changes has no end, and the tool waits for one; changes.test.ts reads it. */
const EXCLUDED = ['/changes'];
/** How bodies that are streams of records are made up and read. */
const HOOKS = path.join(import.meta.dirname, 'schemathesis_hooks.py');

type Run = { code: number; said: string };

describe('requests that schemathesis makes up from the document', () => {
  let stack: TestStack;
  let python: string;

  before(async () => {
    python = await ensureVenv('schemathesis', [SCHEMATHESIS]);
    // With all its neighbours: explanations are a merger's, generations the hook-runner's.
    stack = await stackForTests({ env: { DENIALS_PER_MINUTE: '1000000', LOG_LEVEL: 'info' } });
    // What the document's examples name.
    await sendPlain(stack.api, 'POST', '/collections', { id: 'web', name: 'Web' });
    await sendPlain(stack.api, 'POST', '/masters', { id: 'salt-west' });
    const minion = '/masters/salt-west/minions/web-1.example';
    await sendPlain(stack.api, 'PUT', minion, { collections: ['web'] }, { 'if-none-match': '*' });
  });
  after(() => stack[Symbol.asyncDispose]());

  const run = async (name: string, token: string): Promise<Run> => {
    // In a file of mode 0600: arguments can be seen by everybody on the host.
    const config = path.join(stack.stack.dir, `schemathesis-${name}.toml`);
    await writeFile(config, `[headers]\nAuthorization = "Bearer ${token}"\n`, { mode: 0o600 });
    const args = [
      ...['-m', 'schemathesis.cli', '--config-file', config, 'run', `${stack.stack.api.url}/openapi.json`],
      ...['--checks', CHECKS.join(','), '--phases', 'examples,coverage,fuzzing', '--seed', SEED],
      ...[
        '--max-examples',
        MAX_EXAMPLES,
        '--max-time',
        MAX_TIME_S,
        '--no-shrink',
        // Its threads share Python's parser, which 3.11 does not bear.
        '--workers',
        '1',
        '--warnings',
        'off',
      ],
      ...['--generation-database', ':memory:', '--suppress-health-check', 'all'],
      ...EXCLUDED.flatMap((one) => ['--exclude-path', one]),
    ];
    return new Promise((resolve) => {
      const env = { ...process.env, SCHEMATHESIS_HOOKS: HOOKS };
      const options = { cwd: stack.stack.dir, env, timeout: 400_000, maxBuffer: 64 * 1024 * 1024 };
      execFile(python, args, options, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), said: `${stdout}${stderr}` });
      });
    });
  };

  for (const roles of [['viewer'], ['editor'], ['secret-reader'], ['scoped'], ['admin']]) {
    test(`no fault and no broken promise for ${roles.join()}`, { timeout: 500_000 }, async () => {
      const scoped_roles = [{ role: 'editor', collections: ['web'] }];
      const body = roles[0] === 'scoped' ? { scoped_roles } : { roles };
      const answered = await sendPlain(stack.api, 'POST', '/tokens', { sub: 'schema', ...body });
      assert.equal(answered.status, 201);
      const made = plain(answered);
      const { code, said } = await run(roles.join(), String(made.token));
      assert.equal(code, 0, said.slice(-20_000));
      assert.match(said, /\d+ (?:generated|tested|test cases)/iu, said.slice(-2000));
      // The admin comes last, and may have deleted the token of the first one.
      const ready = await fetch(new URL('/readyz', stack.stack.api.url));
      assert.equal(ready.status, 200, 'the service goes on');
    });
  }
});
