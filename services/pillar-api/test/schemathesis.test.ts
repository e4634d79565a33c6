import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ensureVenv } from '../../../test/support/python.ts';
import { type ApiWorld, plain, sendPlain, startWorld } from './support.ts';

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
/**
 * There is no pillar-merger and no hook-runner, so what asks them is 503; a stream of changes has no end; and an import and an
 * export are streams of other formats, which the tool cannot read (several YAML documents end its thread), with tests of
 * their own.
 */
const EXCLUDED = [
  ...['/explain', '/explain/preview', '/changes', '/import', '/export'],
  ...['/generations', '/generations/{id}', '/masters/{master}/minions/{id}/policies/diff'],
  ...['/hooks', '/hooks/runs', '/hooks/{event}/run'],
];

const MIB = 1024 * 1024;

type Run = { code: number; said: string };

describe('requests that schemathesis makes up from the document', () => {
  let world: ApiWorld;
  let python: string;

  before(async () => {
    python = await ensureVenv('schemathesis', [SCHEMATHESIS]);
    // Nobody drains the records of so many requests.
    const bus = { maxAuditBytes: 512 * MIB, maxFileBytes: 1024 * MIB };
    world = await startWorld({ bus, env: { DENIALS_PER_MINUTE: '1000000', LOG_LEVEL: 'info' } });
    await sendPlain(world.admin, 'POST', '/collections', { id: 'web', name: 'Web' });
    await sendPlain(world.admin, 'POST', '/masters', { id: 'salt-west' });
  });
  after(() => world[Symbol.asyncDispose]());

  const run = async (name: string, token: string): Promise<Run> => {
    // In a file of mode 0600: arguments can be seen by everybody on the host.
    const config = path.join(world.dir, `schemathesis-${name}.toml`);
    await writeFile(config, `[headers]\nAuthorization = "Bearer ${token}"\n`, { mode: 0o600 });
    const args = [
      ...['-m', 'schemathesis.cli', '--config-file', config, 'run', `${world.api.url}/openapi.json`],
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
      const options = { cwd: world.dir, timeout: 400_000, maxBuffer: 64 * 1024 * 1024 };
      execFile(python, args, options, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), said: `${stdout}${stderr}` });
      });
    });
  };

  for (const roles of [['viewer'], ['editor'], ['secret-reader'], ['scoped'], ['admin']]) {
    test(`no fault and no broken promise for ${roles.join()}`, { timeout: 500_000 }, async () => {
      const scoped_roles = [{ role: 'editor', collections: ['web'] }];
      const body = roles[0] === 'scoped' ? { scoped_roles } : { roles };
      const answered = await sendPlain(world.admin, 'POST', '/tokens', { sub: 'schema', ...body });
      assert.equal(answered.status, 201);
      const made = plain(answered);
      const { code, said } = await run(roles.join(), String(made.token));
      assert.equal(code, 0, said.slice(-20_000));
      assert.match(said, /\d+ (?:generated|tested|test cases)/iu, said.slice(-2000));
      // The admin comes last, and may have deleted the token of the first one.
      const ready = await fetch(new URL('/readyz', world.api.url));
      assert.equal(ready.status, 200, 'the service goes on');
    });
  }
});
