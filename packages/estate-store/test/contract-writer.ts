import { openSqliteStore } from '@colonnade/estate-store';
import { runContractWriter } from '@colonnade/estate-store/contract-suite';

/** The process the contract suite kills: writes to the estate file named as its argument until then. */
await runContractWriter(await openSqliteStore({ path: process.argv[2] ?? '' }));
