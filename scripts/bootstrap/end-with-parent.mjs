// Loaded into programs and test processes: one that outlives its starter would go on using the machine unseen.
import process from 'node:process';
import { whenParentEnds } from './parent.mjs';

whenParentEnds(() => process.kill(process.pid, 'SIGTERM'));
