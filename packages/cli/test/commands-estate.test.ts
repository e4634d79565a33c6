import { after, before, describe } from 'node:test';
import { stackForTests } from '../../../test/support/stack.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { ESTATE_STEPS } from './steps/estate.ts';
import { bundledCli, type Cli, environmentOf, privateFile, testSteps } from './support.ts';

describe('commands on the estate', () => {
  const owned = new AsyncDisposableStack();
  let cli: Cli;
  before(async () => {
    const dir = owned.use(await tempDir('roles'));
    const roles = await privateFile(dir.path, 'roles.json', '[{"group":"operators","role":"viewer"}]');
    // Nobody has to be there: only what an issuer gave is revoked, so one must be configured.
    const issuer = { OIDC_ISSUER: 'http://127.0.0.1:9', OIDC_AUDIENCE: 'colonnade', OIDC_ROLES_FILE: roles };
    const stack = owned.use(await stackForTests({ env: { ...issuer, KMS_KEY_PREPUBLISH_S: '0' } }));
    cli = owned.use(await bundledCli(environmentOf(stack)));
    await privateFile(cli.dir, 'inventory.yaml', '{os: {name: Debian}}\n');
    await privateFile(cli.dir, 'order.yaml', '{type: object, required: [total]}\n');
    await privateFile(cli.dir, 'rule.yaml', '{field: os.name, op: eq, value: Debian}\n');
  });
  after(() => owned.disposeAsync());

  testSteps(() => cli, ESTATE_STEPS);
});
