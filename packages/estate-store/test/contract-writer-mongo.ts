import { openMongoStore } from '@colonnade/estate-store';
import { runContractWriter } from '@colonnade/estate-store/contract-suite';

/** The process the contract suite kills: writes to the estate its environment names until then. */
await runContractWriter(await openMongoStore(JSON.parse(process.env.COLONNADE_TEST_STORE ?? '{}')));
