// `npm run verify`: everything that can be said about the sources without running them.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import { checkLengths } from './checks/lengths.ts';
import { checkMachinePaths } from './checks/machine-paths.ts';
import { checkOpenApi } from './checks/openapi.ts';
import { checkReadmes } from './checks/readmes.ts';
import { trackedFiles } from './checks/tracked-files.ts';

const root = path.dirname(import.meta.dirname);

/** A check gives what is wrong, a line each. */
type Check = { name: string; run: () => Promise<string[]> | string[] };

const checks: Check[] = [
  tool('lint and format (biome)', '@biomejs/biome/bin/biome', ['check', '--error-on-warnings', '.']),
  tool('types (tsc)', 'typescript/bin/tsc', ['-p', '.']),
  tool('unused files, exports and dependencies (knip)', 'knip/bin/knip.js', [
    '--no-progress',
    '--no-config-hints',
  ]),
  { name: 'file lengths', run: async () => checkLengths(root, await trackedFiles(root)) },
  { name: 'a README for every package and service', run: async () => checkReadmes(await trackedFiles(root)) },
  { name: 'the OpenAPI document', run: () => checkOpenApi(root) },
  { name: 'no paths of one machine', run: async () => checkMachinePaths(root, await trackedFiles(root)) },
];

/** A tool of the workspace, run with this Node.js; what it prints is what is wrong. */
function tool(name: string, script: string, args: readonly string[]): Check {
  const run = () => {
    const file = path.join(root, 'node_modules', script);
    const { status, stdout, stderr, error } = spawnSync(process.execPath, [file, ...args], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    });
    if (status === 0) return [];
    return [`${stdout ?? ''}${stderr ?? ''}${error?.message ?? ''}`.trim() || `exit code ${status}`];
  };
  return { name, run };
}

let failed = 0;
for (const { name, run } of checks) {
  const start = Date.now();
  const faults = await run();
  const seconds = ((Date.now() - start) / 1000).toFixed(1);
  console.log(`${faults.length === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)`);
  for (const fault of faults) console.log(fault.replace(/^/gm, '  '));
  failed += faults.length === 0 ? 0 : 1;
}
console.log(failed === 0 ? 'verify: all is well' : `verify: ${failed} of ${checks.length} checks failed`);
process.exitCode = failed === 0 ? 0 : 1;
