import { openMongoStore } from '@colonnade/estate-store';

/** A process that stages an import and switches to it, until somebody kills it. */
const { options, rows } = JSON.parse(process.env.COLONNADE_TEST_IMPORT ?? '{}');
const store = await openMongoStore(options);
const root = { tgtType: 'root', tgtId: 'root', pillarenv: 'base' } as const;
for (let start = 0; start < rows; start += 100) {
  await store.stageImport(
    'killed',
    Array.from({ length: 100 }, (_, n) => ({
      kind: 'pillar.create',
      record: { ...root, pid: `k${start + n}`, name: `k${start + n}`, value: 1n, isSecret: false },
    })),
  );
}
await store.applyImport('killed', { changes: rows, by: 'ada', atMs: 1, events: [] });
await store[Symbol.asyncDispose]();
