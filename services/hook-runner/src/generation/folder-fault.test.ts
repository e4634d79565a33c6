import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import { folderFaultOf } from './folder-fault.ts';

test('what is wrong with one folder is told; what is wrong with the whole disk, or no fault of files, is thrown', async () => {
  const faultOf = (thrown: Error) => folderFaultOf(() => Promise.reject(thrown));
  const ofFiles = (code: string) => Object.assign(new Error('no'), { code, syscall: 'open' });
  assert.equal(await faultOf(ofFiles('ENOTDIR')), 'its folder cannot be used: ENOTDIR');
  assert.equal(await folderFaultOf(async () => {}), undefined);
  await assert.rejects(faultOf(ofFiles('ENOSPC')), { code: 'ENOSPC' });
  await assert.rejects(faultOf(new ColonnadeError('conflict', 'another leads')), { code: 'conflict' });
});
