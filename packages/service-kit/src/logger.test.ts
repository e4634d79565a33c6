import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from './logger.ts';

test('fields that hold secrets are censored at every level they may stand at', () => {
  const lines: string[] = [];
  const logger = createLogger({
    service: 'x',
    level: 'info',
    destination: { write: (line: string) => void lines.push(line) },
  });
  logger.info({ value: 'S3CRET', a: { token: 'S3CRET', b: { password: 'S3CRET' } }, count: 5n }, 'constant');
  logger.error({ err: new Error('outer', { cause: new Error('inner') }) }, 'failed');
  assert.ok(!lines.join('').includes('S3CRET'), lines[0]);
  assert.match(lines[0] ?? '', /"msg":"constant"/u);
  assert.match(lines[1] ?? '', /"inner"/u);
});
