import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { promisify } from 'node:util';
import { openRunStore } from '../../../services/hook-runner/src/store/run-store.ts';
import { hookFolder } from '../../../services/hook-runner/test/hooks-support.ts';
import { tempDir } from '../../support/temp.ts';
import { against, type Figure } from '../figure.ts';
import { interleave } from '../measure.ts';

const HOOKS = 100;

/** What running hooks costs beyond starting their processes. */
export const hooks: Figure = {
  name: 'hooks',
  about: 'a folder of 100 trivial hooks, beside a bare spawn with pipes of each, and run-parts',
  async measure({ repeats }) {
    await using folder = await hookFolder();
    await using dir = await tempDir('bench-hooks');
    const files: string[] = [];
    for (let i = 0; i < HOOKS; i++) files.push(await folder.add(String(i).padStart(3, '0'), 'exit 0'));
    using store = openRunStore(path.join(dir.path, 'hooks.sqlite'));
    let run = 0;
    const found = await interleave(repeats, {
      ours: () => timed(() => folder.run()),
      noted: () => {
        run += 1;
        const ledger = store.ledger({ id: String(run), event: 'bench', subject: 'bench' });
        return timed(() => folder.run({}, { ledger }));
      },
      floor: () => timed(() => bareSpawns(files, folder.path)),
      runParts: () => timed(() => promisify(execFile)('run-parts', ['--regex=.*', folder.path])),
    });
    const common = { unit: 'ms a hook', better: 'lower' } as const;
    return [
      against(
        {
          ...{ what: 'hooks, 100 trivial ones', ...common, ours: found.ours.ms, floor: found.floor.ms },
          floorIs: 'a bare spawn with pipes, and wait',
        },
        { atMost: 1.3 },
      ),
      {
        ...{ what: 'hooks, each noted before and after', ...common },
        ...{ ours: found.noted.ms, floor: found.ours.ms, floorIs: 'without the notes' },
        note: 'three synced transactions of SQLite a hook: what it costs that none runs twice',
      },
      {
        ...{ what: 'hooks, beside run-parts', ...common, ours: found.ours.ms },
        ...{ floor: found.runParts.ms, floorIs: 'run-parts of Debian, a C program with vfork' },
      },
    ];
  },
};

async function timed(work: () => Promise<unknown>): Promise<{ ms: number }> {
  const startedMs = performance.now();
  await work();
  return { ms: (performance.now() - startedMs) / HOOKS };
}

async function bareSpawns(files: readonly string[], cwd: string): Promise<void> {
  for (const file of files) {
    const child = spawn(file, [], { cwd, env: {}, stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.resume();
    child.stderr.resume();
    await once(child, 'close');
  }
}
