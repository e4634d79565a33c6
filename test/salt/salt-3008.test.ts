import { describeSalt } from './full-stack.ts';

await describeSalt('3008');
