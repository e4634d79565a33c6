import { describe } from 'node:test';
import { testCollections } from './contract/collections.ts';
import { testCrashes } from './contract/crash.ts';
import { testFleet } from './contract/fleet.ts';
import type { CreateHarness } from './contract/harness.ts';
import { testHistory } from './contract/history.ts';
import { testIdempotency } from './contract/idempotency.ts';
import { testImports } from './contract/imports.ts';
import { testImportsOfTasks } from './contract/imports-tasks.ts';
import { testInventories } from './contract/inventories.ts';
import { testKeyUse } from './contract/key-use.ts';
import { testOutbox } from './contract/outbox.ts';
import { testPaging } from './contract/paging.ts';
import { testPillars } from './contract/pillars.ts';
import { testPurging } from './contract/purging.ts';
import { testRaces } from './contract/races.ts';
import { testRefusals } from './contract/refusals.ts';
import { testReopening } from './contract/reopening.ts';
import { testRetention } from './contract/retention.ts';
import { testServices } from './contract/services.ts';
import { testSnapshots } from './contract/snapshots.ts';
import { testTasks } from './contract/tasks.ts';
import { testValues } from './contract/values.ts';

export { runContractWriter } from './contract/crash-writer.ts';
export type { CreateHarness, EstateHarness, StoreOptions } from './contract/harness.ts';

/**
 * What every adapter of the estate must pass. It knows the port and the harness only; `create` makes an empty
 * estate for each test. Registers its tests with `node:test`; `skip` says why they cannot be run.
 */
export function runEstateContract(
  name: string,
  create: CreateHarness,
  { skip = false }: { skip?: false | string } = {},
): void {
  describe(`the estate on ${name}`, { skip }, () => {
    testPillars(create);
    testPurging(create);
    testHistory(create);
    testRetention(create);
    testCollections(create);
    testFleet(create);
    testTasks(create);
    testInventories(create);
    testServices(create);
    testKeyUse(create);
    testValues(create);
    testRefusals(create);
    testPaging(create);
    testSnapshots(create);
    testIdempotency(create);
    testOutbox(create);
    testRaces(create);
    testReopening(create);
    testImports(create);
    testImportsOfTasks(create);
    testCrashes(create);
  });
}
