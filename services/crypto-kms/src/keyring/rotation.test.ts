import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import { tempDir } from '../../../../test/support/temp.ts';
import { waitFor } from '../../../../test/support/wait-for.ts';
import { openKeyring } from './keyring.ts';
import { toRootKey } from './root-key.ts';
import { type RecordOwnAct, startRotation } from './rotation.ts';

const root = toRootKey(createSecretKey(randomBytes(32)));
const record: RecordOwnAct = (_act, _version, work) => work();
const silent = {
  record,
  onRotated() {},
  onRefreshed() {},
  onErased() {},
  onUsed() {},
  onFault: (error: Error) => assert.fail(error),
};

test('the timer makes the next version when the active one is old enough, once for all replicas', async () => {
  await using dir = await tempDir('rotation');
  const options = { stateDir: dir.path, name: 'pillars', root, prepublishMs: 200 };
  const rings = await Promise.all([openKeyring(options), openKeyring(options)]);
  const made: string[] = [];
  await using stack = new AsyncDisposableStack();
  for (const keyring of rings) {
    const onRotated = ({ kid }: { kid: string }) => void made.push(kid);
    stack.use(startRotation({ ...silent, keyring, maxAgeMs: 1000, pollMs: 20, onRotated }));
  }
  await waitFor('a third version on both', () => rings.every((ring) => ring.active().kid === 'pillars-v3'));
  // The two keep one number line: no version was made twice.
  assert.deepEqual(made.slice(0, 2), ['pillars-v2', 'pillars-v3']);
  assert.equal(new Set(made).size, made.length);
});

test('without an age it only reads what others make', async () => {
  await using dir = await tempDir('rotation');
  const options = { stateDir: dir.path, name: 'pillars', root, prepublishMs: 0 };
  const [mine, theirs] = [await openKeyring(options), await openKeyring(options)];
  const seen: number[] = [];
  const onRefreshed = (versions: readonly unknown[]) => void seen.push(versions.length);
  await using _rotation = startRotation({
    ...silent,
    keyring: mine,
    maxAgeMs: undefined,
    pollMs: 10,
    onRefreshed,
  });
  await theirs.rotate();
  await waitFor('it to be seen', () => mine.active().kid === 'pillars-v2');
  assert.deepEqual(seen, [2]);
});

test('nothing happens by itself that cannot be put on record', async () => {
  await using dir = await tempDir('rotation');
  const options = { stateDir: dir.path, name: 'pillars', root, prepublishMs: 0 };
  const keyring = await openKeyring(options);
  await keyring.rotate();
  await keyring.setMinVersion(2);
  await keyring.destroy(1, 0);
  const asked: string[] = [];
  let isAway = true;
  const recorded: RecordOwnAct = (act, version, work) => {
    asked.push(`${act} ${version}`);
    if (isAway) throw new ColonnadeError('bus_unavailable', 'the stream is away');
    return work();
  };
  const faults: string[] = [];
  const onFault = (error: Error) => void faults.push(error.message);
  await using _rotation = startRotation({
    ...{ ...silent, keyring, maxAgeMs: 1, pollMs: 10, onFault, record: recorded },
  });
  await waitFor('two turns', () => faults.length >= 2);
  assert.deepEqual(
    keyring.versions().map(({ state, version }) => `${version} ${state}`),
    ['1 destroyed', '2 active'],
  );
  assert.equal((await openKeyring(options)).active().kid, 'pillars-v2');
  assert.deepEqual([...new Set(asked)], ['erase 1']);
  isAway = false;
  await waitFor('the next version', () => keyring.active().kid === 'pillars-v3');
  assert.ok(asked.includes('rotate undefined'));
  const next = await openKeyring(options);
  await assert.rejects(next.undestroy(1), { code: 'conflict', message: /is gone/u });
});
