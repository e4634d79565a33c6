import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';

const SERVICES = path.join(import.meta.dirname, '../../services');

test('services that run on one host with their defaults do not take each other’s port', async () => {
  const ports: string[] = [];
  for (const service of await readdir(SERVICES)) {
    // Each README's table is held against the settings by the service's own test.
    const readme = await readFile(path.join(SERVICES, service, 'README.md'), 'utf8');
    const rows = readme.matchAll(/^\| `(?:OPS|HTTP)_PORT` \| `(\d+)` \|/gmu);
    ports.push(...Array.from(rows, ([, port]) => port ?? ''));
  }
  assert.ok(ports.length >= 6, ports.join(' '));
  assert.equal(new Set(ports).size, ports.length, ports.join(' '));
});
