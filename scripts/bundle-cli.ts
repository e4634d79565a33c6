// The operator's command as one file: `node scripts/bundle-cli.ts [FILE]`. It runs on Node.js 24 without anything beside it.
import { chmod, mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { build } from 'esbuild';

const root = path.dirname(import.meta.dirname);

/** Parses on any Node.js since 18, so that an old one says what it lacks instead of where the syntax surprised it. */
const TARGET = 'node18';
const BANNER = `#!/usr/bin/env node
if (Number(process.versions.node.split('.')[0]) < 24) {
  console.error('colonnade: this needs Node.js 24 or later, and this is ' + process.version);
  process.exit(2);
}`;

/** Never there, and asked for inside a try: what MongoDB's driver can use beside itself. */
const OPTIONAL = [
  'kerberos',
  'snappy',
  'socks',
  'aws4',
  'gcp-metadata',
  'mongodb-client-encryption',
  '@mongodb-js/zstd',
  '@aws-sdk/credential-providers',
];

/** Whole or not at all. */
async function bundle(file: string): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  const draft = `${file}.${process.pid}`;
  try {
    await build({
      entryPoints: [path.join(root, 'packages', 'cli', 'src', 'main.ts')],
      outfile: draft,
      bundle: true,
      platform: 'node',
      // As CommonJS a module is run when it is first needed: MongoDB's driver and SQLite only by what works on a store.
      format: 'cjs',
      target: TARGET,
      banner: { js: BANNER },
      define: { 'import.meta.url': 'undefined' },
      external: OPTIONAL,
      legalComments: 'eof',
      logLevel: 'warning',
      logOverride: { 'empty-import-meta': 'silent' },
    });
    await chmod(draft, 0o755);
    await rename(draft, file);
  } finally {
    await rm(draft, { force: true });
  }
}

await bundle(path.resolve(process.argv[2] ?? path.join(root, '.colonnade', 'cli', 'colonnade.cjs')));
