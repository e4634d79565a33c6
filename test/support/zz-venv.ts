import { ensureVenv, readRequirements } from '/tmp/wt/salt/test/support/python.ts';

for (const v of ['3006', '3008']) {
  const t = Date.now();
  console.log(
    await ensureVenv(`salt-${v}`, await readRequirements(`/tmp/wt/salt/test/salt/requirements-${v}.txt`)),
    (Date.now() - t) / 1000,
  );
}
