import { run } from './run.ts';
import { VERSION } from './version.ts';

void run(process.argv.slice(2), process.env, VERSION).then((code) => {
  process.exitCode = code;
});
