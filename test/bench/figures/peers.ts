import { execFile, spawn } from 'node:child_process';
import { cp, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { MasterCredentials } from '@colonnade/embedded';
import { ensureVenv, readRequirements } from '../../support/python.ts';
import { tempDir } from '../../support/temp.ts';
import type { Figure, Row } from '../figure.ts';
import { startMergeFloor } from '../floor/merge-floor.ts';
import { spreadOf } from '../measure.ts';
import {
  askForPillar,
  BENCH_MINION,
  type BenchStack,
  fillBenchEstate,
  startBenchStack,
} from '../parts/bench-stack.ts';
import { type Peer, type Peers, startPeers } from '../parts/peer-modules.ts';

const run = promisify(execFile);
const salt = path.join(import.meta.dirname, '..', '..', 'salt');
const modules = path.join(import.meta.dirname, '..', '..', '..', 'infra', 'salt', 'colonnade_salt');
const LIBRARIES = ['saltext-redis==1.0.2', 'redis==8.1.0', 'saltext-vault==1.8.0', 'pymongo==4.20.0'];
const ROUNDS = 5;
/** Compiles of one module before it is another's turn. */
const ROW = 11;
const PILLARS = 20;
const GOAL_MS = 4;
const FLOOR_REPLY_BYTES = 3000;
/** Services run for months: what they do is compiled by then. */
const WARMING_MERGES = 3000;
/** As long as the modules of the others have their turns, milliseconds. */
const PAUSE_MS = 3000;
const PAUSES = 5;
const REASON =
  "Salt's loader takes some 3 ms, of ours as of each module; the exchange with the merger 3.4 asked again at once, and 4.7 after the 10 that a compile takes, as in the row of the pause; a thread that keeps the time limit, the breaker and the files with the secrets take the rest";

/** Our external pillar and Salt's own, for the same minion, through the same Salt. */
export const peers: Figure = {
  name: 'peers',
  about:
    "time in ext_pillar for one compile: ours and Salt's stack, cmd_json, redis, mongo, gpg and vault, through the same Salt",
  async measure({ repeats, report }) {
    await using bench = await startBenchStack('sqlite');
    const credentials = await bench.addMaster('m1');
    const { redisPassword, redisUser, token } = credentials;
    await fillBenchEstate(bench.api, 'm1');
    await warm(bench, credentials);
    await using folder = await tempDir('peers');
    const dir = folder.path;
    const python = await prepareSalt(dir, report);
    const pillars = Object.fromEntries(
      Array.from({ length: PILLARS }, (_, i) => [`pillar_${i}`, { n: i, ratio: 0.5, text: 'x'.repeat(150) }]),
    );
    await using salts = await startPeers(dir, BENCH_MINION, pillars, python.command, report);
    await secretFile(path.join(dir, 'password'), redisPassword);
    await secretFile(path.join(dir, 'token'), token);
    const { host, port } = bench.stack.redis;
    const colonnade = {
      ...{ master: 'm1', host, port, username: redisUser, allow_pillar_cache: false },
      ...{ password_file: path.join(dir, 'password'), token_file: path.join(dir, 'token') },
    };
    await writeMasterConfig(dir, Object.values(salts.peers));
    const entries = {
      colonnade: [{ colonnade }],
      ...Object.fromEntries(Object.entries(salts.peers).map(([name, peer]) => [name, peer.entries])),
    };
    const found: Found = { inRow: new Map(), first: [] };
    for (let i = 0; i < repeats; i++) {
      const { inRow, first } = await timeOnce(python, dir, entries, report);
      for (const [name, median] of inRow) found.inRow.set(name, [...(found.inRow.get(name) ?? []), median]);
      found.first.push(first);
    }
    return [...toRows(found, salts), await afterPause(found, repeats)];
  },
};

/** Milliseconds, one a round: of each module in a row, and of ours after a pause. */
type Found = { inRow: Map<string, number[]>; first: number[] };

async function warm(bench: BenchStack, credentials: MasterCredentials): Promise<void> {
  const bridge = bench.connect(credentials);
  for (let i = 0; i < WARMING_MERGES; i++) await askForPillar(bridge);
}

function toRows({ inRow }: Found, { peers: others, missing }: Peers): Row[] {
  const ours = spreadOf(inRow.get('colonnade') ?? []);
  const silent = Object.keys(others).filter((name) => !inRow.has(name));
  const without = [...missing, ...silent.map((name) => `${name}: gave no pillar`)];
  const row = { unit: 'ms', better: 'lower', ours } as const;
  const rows: Row[] = [
    {
      ...{ ...row, what: 'time in ext_pillar, 20 pillars, 5 secrets opened' },
      goal: { text: `≤ ${GOAL_MS} ms`, met: ours.median <= GOAL_MS },
      reason: REASON,
      ...(without.length === 0 ? {} : { note: `not to be had here: ${without.join('; ')}` }),
    },
  ];
  for (const [name, { is: floorIs }] of Object.entries(others)) {
    if (silent.includes(name)) continue;
    const floor = spreadOf(inRow.get(name) ?? []);
    const goal = { text: 'ahead', met: ours.median <= floor.median };
    rows.push({ ...row, what: `… and Salt's ${name}`, floor, floorIs, goal, reason: REASON });
  }
  return rows;
}

/** What a machine makes of any service that has done nothing for seconds: least processes pay for it as ours do. */
async function afterPause({ first }: Found, repeats: number): Promise<Row> {
  await using floor = await startMergeFloor(FLOOR_REPLY_BYTES);
  for (let i = 0; i < WARMING_MERGES; i++) await floor.ask();
  const medians: number[] = [];
  for (let i = 0; i < repeats; i++) {
    const times: number[] = [];
    for (let n = 0; n < PAUSES; n++) {
      await sleep(PAUSE_MS);
      const startedMs = performance.now();
      await floor.ask();
      times.push(performance.now() - startedMs);
    }
    medians.push(spreadOf(times).median);
  }
  return {
    ...{ what: 'time in ext_pillar, the first after seconds of nothing', unit: 'ms', better: 'lower' },
    ...{ ours: spreadOf(first), floor: spreadOf(medians) },
    floorIs: 'without Salt: the least pair of processes of the merge, after three seconds of nothing',
    note: 'where this was measured, memory that nobody touched for a second is slow at its first touch, whoever it belongs to',
  };
}

/** @returns milliseconds: for each module the median of its compiles in a row, and for ours that of the first ones too */
async function timeOnce(
  { command, env }: { command: string; env: NodeJS.ProcessEnv },
  dir: string,
  entries: object,
  report: (text: string) => void,
): Promise<{ inRow: [string, number][]; first: number }> {
  const script = path.join(import.meta.dirname, '..', 'parts', 'time_pillars.py');
  const child = spawn(command, [script], { env, stdio: ['pipe', 'pipe', 'pipe'] });
  const order = {
    ...{ config: path.join(dir, 'master'), dir, minion: BENCH_MINION, least: PILLARS, entries },
    ...{ rounds: ROUNDS, row: ROW },
  };
  child.stdin.end(JSON.stringify(order));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  if (out === '') throw new Error(err.slice(-2000));
  type Times = Record<string, number[]>;
  const { times, first, failed } = JSON.parse(out) as {
    times: Times;
    first: Times;
    failed: Record<string, string>;
  };
  if (failed.colonnade !== undefined) throw new Error(failed.colonnade);
  // One of Salt's that does not work here takes nothing from the others.
  for (const [name, why] of Object.entries(failed)) report(`${name} gives no pillar: ${why}`);
  const working = Object.entries(times).filter(([name]) => failed[name] === undefined);
  return {
    inRow: working.map(([name, taken]) => [name, spreadOf(taken).median]),
    first: spreadOf(first.colonnade ?? []).median,
  };
}

async function prepareSalt(
  dir: string,
  report: (text: string) => void,
): Promise<{ command: string; env: NodeJS.ProcessEnv }> {
  report('Salt 3008 with the extensions that hold modules it once had');
  const requirements = await readRequirements(path.join(salt, 'requirements-3008.txt'));
  const command = await ensureVenv('salt-3008', requirements);
  const lib = path.join(dir, 'lib');
  // Beside Salt's own environment, which the tests use too; Salt itself is there.
  await run(command, ['-m', 'pip', 'install', '--quiet', '--no-deps', '--target', lib, ...LIBRARIES]);
  // Salt takes paths outside of its root folder for paths within.
  await cp(path.join(modules, 'pillar'), path.join(dir, 'extmods', 'pillar'), { recursive: true });
  const version = await run(command, ['-c', 'import salt.version; print(salt.version.__version__)']);
  report(`Salt ${version.stdout.trim()}`);
  // Salt loads a module anew at each compile; like any master, this one may keep what it has compiled of it.
  const { PYTHONDONTWRITEBYTECODE: _, ...env } = process.env;
  return { command, env: { ...env, PYTHONPATH: lib, PYTHONWARNINGS: 'ignore' } };
}

async function writeMasterConfig(dir: string, peers: readonly Peer[]): Promise<void> {
  const config = {
    ...{ root_dir: dir, cachedir: path.join(dir, 'cache'), pki_dir: path.join(dir, 'pki') },
    ...{ log_file: path.join(dir, 'log'), extension_modules: path.join(dir, 'extmods') },
    ...{ log_level_logfile: 'quiet', user: 'root' },
    ...Object.assign({}, ...peers.map(({ config: own = {} }) => own)),
  };
  await writeFile(path.join(dir, 'master'), JSON.stringify(config));
}

async function secretFile(file: string, secret: string): Promise<void> {
  await writeFile(file, `${secret}\n`, { mode: 0o600 });
}
