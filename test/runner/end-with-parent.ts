// Loaded into every test process: one that outlives its runner would go on using the machine unseen.
import process from 'node:process';

const parent = process.ppid;

setInterval(() => {
  if (process.ppid !== parent) process.exit(1);
}, 1_000).unref();
