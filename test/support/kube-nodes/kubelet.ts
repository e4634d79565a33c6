// A stand-in for the kubelet, as far as static pods go: `node kubelet.ts MANIFESTS STATE_FOLDER`.
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, openSync, readdirSync, readFileSync, watch, writeFileSync } from 'node:fs';
import path from 'node:path';

/** What a pod's manifest says that matters here. */
type Pod = {
  metadata: { name: string };
  spec: { terminationGracePeriodSeconds?: number; containers: readonly { command: readonly string[] }[] };
};
type Running = { pid: number; started: string; hash: string; graceMs: number; stopping: boolean };

const [manifests = '', state = ''] = process.argv.slice(2);
const SCAN_MS = 500;
const RESTART_MS = 1000;
const stateFile = path.join(state, 'running.json');
mkdirSync(state, { recursive: true });

/** Containers outlive the kubelet: those that an earlier one started are taken over. */
const running = new Map<string, Running>(readState());
const earliest = new Map<string, number>();

function readState(): [string, Running][] {
  try {
    return JSON.parse(readFileSync(stateFile, 'utf8')) as [string, Running][];
  } catch {
    return [];
  }
}

/** Every file whose name does not begin with a dot, whatever it ends in: also a `.bak`. */
function wanted(): Map<string, { pod: Pod; hash: string }> {
  const found = new Map<string, { pod: Pod; hash: string }>();
  for (const entry of readdirSync(manifests, { withFileTypes: true })) {
    if (entry.name.startsWith('.') || !entry.isFile()) continue;
    try {
      const text = readFileSync(path.join(manifests, entry.name), 'utf8');
      const pod = JSON.parse(text) as Pod;
      found.set(pod.metadata.name, { pod, hash: createHash('sha256').update(text).digest('hex') });
    } catch (error) {
      console.error(`${entry.name}: ${String(error)}`);
    }
  }
  return found;
}

/** When a process started: a pid alone may be another's by now. */
function startOf(pid: number): string | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

function start(name: string, pod: Pod, hash: string): void {
  const [command = '', ...args] = pod.spec.containers[0]?.command ?? [];
  const log = openSync(path.join(state, `${name}.log`), 'a');
  const child: ChildProcess = spawn(command, args, { detached: true, stdio: ['ignore', log, log] });
  child.on('error', (error) => console.error(`${name}: ${error.message}`));
  child.on('exit', (code, signal) => console.error(`${name}: ended with ${code ?? signal}`));
  const pid = child.pid ?? -1;
  console.error(`${name}: started as ${pid}`);
  const graceMs = (pod.spec.terminationGracePeriodSeconds ?? 30) * 1000;
  running.set(name, { pid, started: startOf(pid) ?? '', hash, graceMs, stopping: false });
  earliest.set(name, Date.now() + RESTART_MS);
}

function stop(name: string, one: Running): void {
  one.stopping = true;
  console.error(`${name}: TERM to ${one.pid}`);
  kill(one, 'SIGTERM');
  setTimeout(() => kill(one, 'SIGKILL'), one.graceMs);
}

function kill(one: Running, signal: NodeJS.Signals): void {
  if (startOf(one.pid) !== one.started) return;
  try {
    process.kill(one.pid, signal);
  } catch {
    // It has just ended.
  }
}

function sync(): void {
  const pods = wanted();
  for (const [name, one] of running) {
    if (startOf(one.pid) !== one.started) running.delete(name);
    else if (!one.stopping && pods.get(name)?.hash !== one.hash) stop(name, one);
  }
  for (const [name, { pod, hash }] of pods) {
    // A pod that is still ending keeps its place.
    if (running.has(name) || Date.now() < (earliest.get(name) ?? 0)) continue;
    start(name, pod, hash);
  }
  writeFileSync(stateFile, JSON.stringify([...running]));
}

// One that was on its way out when an earlier kubelet ended is told again.
for (const [name, one] of running) if (one.stopping) stop(name, one);
watch(manifests, () => sync());
setInterval(sync, SCAN_MS);
sync();
