import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import {
  breakFile,
  readSaltLogs,
  type Salt,
  type SaltResult,
  type SaltVersion,
  startSalt,
} from '../support/salt.ts';
import { findTraces } from '../support/search-traces.ts';
import { waitFor } from '../support/wait-for.ts';

/** Where a Salt master finds the bridge, and who it is there. */
export type BridgeDescription = {
  redisHost: string;
  redisPort: number;
  username: string;
  password: string;
  token: string;
  master: string;
};

export type ApiDescription = { url: string; token: string };

/** A part that can be taken away, and what a minion is told then. */
export type Part = { takeAway(): Promise<void>; bringBack(): Promise<void>; codes: RegExp };

export const MINION = 'web-1';
export const OTHER_MINION = 'db-1';
/** What the estate holds for the minion as the secret `db_password`, and for the other one as `db_root`. */
export const SECRET = 'plaintext-für-web "1"';
export const OTHER_SECRET = 'plaintext-of-db-1-alone';

export type Scene = Salt & {
  /** The file that the state renders the secret into. */
  target: string;
};

/** Starts Salt against a bridge. 3006 has the module as one file, 3008 as a package: so both installs are tried. */
export async function startScene(
  version: SaltVersion,
  bridge: BridgeDescription,
  api: ApiDescription,
): Promise<Scene> {
  const salt = await startSalt({
    version,
    install: version === '3006' ? 'one-file' : 'package',
    minion: MINION,
    secrets: { password: bridge.password, token: bridge.token, 'api-token': api.token },
    colonnade: (file) => ({
      master: bridge.master,
      host: bridge.redisHost,
      port: bridge.redisPort,
      username: bridge.username,
      password_file: file('password'),
      token_file: file('token'),
      breaker: { cooldown_ms: 500 },
      api_url: api.url,
      api_token_file: file('api-token'),
    }),
    states: { 'top.sls': everywhere('colonnade.guard', 'app'), 'app.sls': appState },
    pillars: {
      'top.sls': everywhere('app'),
      'app.sls': 'from_files: here\nnginx:\n  user: www\n  workers: 1\n',
    },
  });
  return { ...salt, target: path.join(salt.dir, 'app.conf') };
}

function everywhere(...names: readonly string[]): string {
  return `base:\n  '*':\n${names.map((name) => `    - ${name}\n`).join('')}`;
}

/** Careless on purpose: without its pillar it renders all the same. */
const appState = `
app-config:
  file.managed:
    - name: {{ opts['root_dir'] }}/app.conf
    - contents: {{ pillar.get('db_password', 'rendered without the pillar') | json }}
    - show_changes: False
`;

/** What the master compiles: files and scopes merged by Salt, the secret opened, the marker set. */
export async function checkShowPillar({ saltRun }: Scene): Promise<void> {
  const { value, text } = await saltRun('pillar.show_pillar', MINION);
  const { colonnade, ...pillar } = object(value, text);
  assert.deepEqual(pillar, {
    db_password: SECRET,
    from_files: 'here',
    motd: 'of the collection',
    nginx: { user: 'www', workers: 4, ratio: 1.0 },
  });
  assert.match(text, /"ratio": 1\.0/, 'a float stays a float');
  const { bridge, clock } = object(colonnade, text);
  assert.equal(bridge, 'ok');
  assert.ok(Number.isInteger(clock));
}

/** The secret comes into the file by a run of the minion. */
export async function checkApply(scene: Scene, apply = scene.salt): Promise<void> {
  await rm(scene.target, { force: true });
  const result = await apply('state.apply');
  assert.equal(result.code, 0, result.text);
  assert.ok(existsSync(scene.target), result.text);
  assert.equal((await readFile(scene.target, 'utf8')).trim(), SECRET);
}

/** Without the part the run is refused and nothing is written; with it the run is as before. */
export async function checkPart(scene: Scene, part: Part): Promise<void> {
  await part.takeAway();
  try {
    await rm(scene.target, { force: true });
    // No guard in it: Salt itself refuses, for the module's error.
    const refused = await scene.saltCall('state.apply', 'app');
    assert.notEqual(refused.code, 0, refused.text);
    assert.match(refused.text, part.codes);
    assert.ok(!existsSync(scene.target), 'a file was written without the pillar');
    assertTellsCodesOnly(refused);
  } finally {
    await part.bringBack();
  }
  await waitFor('the run to work again', () => checkApply(scene, scene.saltCall).then(() => true), {
    limitMs: 60_000,
    everyMs: 500,
  });
}

/** What Salt says of the external pillar is its code: no address, no text of a library. */
function assertTellsCodesOnly({ text }: SaltResult): void {
  const told = [...text.matchAll(/Failed to load ext_pillar colonnade: ([^"\n]*)/g)].map(([, what]) => what);
  assert.ok(told.length > 0, text);
  for (const what of told) assert.match(String(what), /^COLONNADE_[A-Z_]+$/);
}

/**
 * Salt skips a module that it cannot import, and runs green: what the guard is for.
 * The module breaks between two runs of the same master, as by a failed upgrade.
 */
export async function checkGuard(scene: Scene): Promise<void> {
  const mend = await breakFile(scene.moduleFile, 'import a_module_that_is_not_there\n');
  try {
    const careless = await scene.saltCall('state.apply', 'app');
    assert.equal(careless.code, 0, 'Salt refuses by itself: then the guard is not needed any more');
    assert.equal((await readFile(scene.target, 'utf8')).trim(), 'rendered without the pillar');
    await rm(scene.target);
    const guarded = await scene.saltCall('state.apply');
    assert.notEqual(guarded.code, 0, guarded.text);
    assert.match(guarded.text, /the pillar did not come from Colonnade/);
    assert.ok(!existsSync(scene.target), 'the guard came too late');
  } finally {
    await mend();
  }
  // How the README has an administrator try whether the guard is in the way.
  const tried = await scene.saltCall('state.apply', 'pillar={"colonnade": {"bridge": "no"}}');
  assert.match(tried.text, /the pillar did not come from Colonnade/);
  await checkApply(scene, scene.saltCall);
}

/** A minion that asks for another's scope gets none of it. */
export async function checkForeignScope(scene: Scene, master: string): Promise<void> {
  const scope = `minion_id:${OTHER_MINION};master:${master}`;
  const { value, text } = await scene.saltCall('pillar.items', `pillarenv=${scope}`);
  const { local } = object(value, text);
  assert.deepEqual(findTraces('the answer', Buffer.from(text), [OTHER_SECRET]), []);
  assert.ok(!('db_root' in object(local, text)), text);
  assert.match(text, /COLONNADE_FORBIDDEN/);
}

/** The runner names the source of every key, and shows no secret. */
export async function checkExplain({ saltRun }: Scene): Promise<void> {
  const { value, text } = await saltRun('colonnade.explain', MINION);
  const { keys, errors } = object(value, text) as { keys: Record<string, Explained>; errors?: unknown };
  assert.equal(errors, undefined, text);
  assert.deepEqual(findTraces('the explanation', Buffer.from(text), [SECRET, OTHER_SECRET]), []);
  const sources = Object.fromEntries(Object.entries(keys).map(([name, { from }]) => [name, from]));
  assert.deepEqual(sources, {
    db_password: ['colonnade'],
    from_files: ['sls'],
    motd: ['colonnade'],
    nginx: ['sls', 'colonnade'],
  });
  assert.equal(keys.db_password?.value, '*******');
  assert.equal(keys.db_password?.winner?.tgt_type, 'minion');
  assert.equal(keys.motd?.value, 'of the collection');
  assert.equal(keys.motd?.winner?.tgt_type, 'collection');
  assert.deepEqual(
    keys.motd?.overrode?.map(({ tgt_type }) => tgt_type),
    ['root'],
  );
  assert.deepEqual(keys.nginx?.merged, { sls: ['nginx:user'], colonnade: ['nginx:workers', 'nginx:ratio'] });
}

/** Where the pillar cannot be compiled, the runner says so and still names the scopes. */
export async function checkExplainWithout({ saltRun }: Scene, part: Part): Promise<void> {
  await part.takeAway();
  try {
    const { code, value, text } = await saltRun('colonnade.explain', MINION);
    const { errors, clock } = object(value, text);
    assert.notEqual(code, 0, 'the runner ended as if all were well');
    assert.match(String(errors), part.codes);
    assert.ok(Number.isInteger(clock), text);
  } finally {
    await part.bringBack();
  }
}

type Explained = {
  value: unknown;
  from: string[];
  merged?: Record<string, string[]>;
  winner?: { tgt_type: string };
  overrode?: { tgt_type: string }[];
};

/** Nothing that Salt's daemons wrote into their logs is a secret. */
export async function checkLogs(scene: Scene, secrets: readonly string[]): Promise<void> {
  assert.deepEqual(findTraces("Salt's logs", Buffer.from(await readSaltLogs(scene)), secrets), []);
}

function object(value: unknown, text: string): Record<string, unknown> {
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), text);
  return value as Record<string, unknown>;
}
