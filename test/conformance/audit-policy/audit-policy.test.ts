import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { type AuditAttributes, compilePolicy, loadPolicy } from '@colonnade/audit';
import { ColonnadeError } from '@colonnade/contracts';
import { buildGo, skipWithoutGo } from '../../support/go.ts';
import { createRandom } from '../../support/random.ts';
import { generatePolicy, generateRequest } from './generate.ts';

const POLICIES = 4500;
const REQUESTS = 8;

// COLONNADE_TEST_SEED repeats a run; every failure names its seed.
const seed = Number(process.env.COLONNADE_TEST_SEED ?? Date.now() % 2 ** 31);

type Case = { policy: string; requests: readonly AuditAttributes[] };
type Answer = {
  error?: string;
  /** The fields an error is about, when Kubernetes names them. */
  places: readonly string[];
  warnings: readonly string[];
  results: readonly { level: string; omitStages: readonly string[]; omitManagedFields: boolean }[];
};

describe(`policies against Kubernetes' own evaluator, seed ${seed}`, { skip: skipWithoutGo() }, () => {
  let oracle = '';
  before(
    async () => {
      oracle = await buildGo(import.meta.dirname);
    },
    { timeout: 280_000 },
  );

  function ask(cases: readonly Case[]): Answer[] {
    const input = cases.map(toLine).join('\n');
    const { stdout, stderr, status } = spawnSync(oracle, { input, maxBuffer: 2 ** 28 });
    assert.equal(status, 0, stderr?.toString());
    return stdout
      .toString()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Answer);
  }

  test(`${POLICIES} policies with ${REQUESTS} requests each: no difference`, () => {
    const random = createRandom(seed);
    const cases = Array.from({ length: POLICIES }, () => ({
      policy: generatePolicy(random),
      requests: Array.from({ length: REQUESTS }, () => generateRequest(random)),
    }));
    const theirs = ask(cases);
    assert.equal(theirs.length, cases.length);
    for (const [index, one] of cases.entries()) assertSame(one, theirs[index] as Answer);
    // The comparison is worth something only while there is something of everything.
    const accepted = theirs.filter((answer) => answer.error === undefined);
    const warned = accepted.filter(({ warnings }) => warnings.length > 0).length;
    const located = theirs.filter(({ places }) => places.length > 0).length;
    assert.ok(accepted.length * REQUESTS >= 20_000, `${accepted.length} accepted`);
    assert.ok(theirs.length - accepted.length > 500 && warned > 50 && located > 100, `${warned}, ${located}`);
    const levels = new Set(accepted.flatMap(({ results }) => results.map(({ level }) => level)));
    assert.equal(levels.size, 4);
  });

  test('a policy of the kind cloud providers ship, for every request its words can make: no difference', async () => {
    const policy = await readFile(path.join(import.meta.dirname, 'cloud-policy.yaml'), 'utf8');
    const requests = requestsAbout(policy);
    assert.ok(requests.length > 5000, `${requests.length} requests`);
    const [theirs] = ask([{ policy, requests }]);
    assertSame({ policy, requests }, theirs as Answer);
    assert.equal(new Set(theirs?.results.map(({ level }) => level)).size, 4);
  });

  test('v1beta1 is read as v1, with a warning, where Kubernetes refuses it', () => {
    const random = createRandom(seed);
    const requests = Array.from({ length: 20 }, () => generateRequest(random));
    const old = 'apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules:\n- level: Metadata\n';
    const [refused, current] = ask([
      { policy: old, requests },
      { policy: old.replace('beta1', ''), requests },
    ]);
    assert.match(refused?.error ?? '', /v1beta1/u);
    const { policy, warnings } = loadPolicy(old, { strict: false });
    assert.equal(warnings.length, 1);
    assert.deepEqual(evaluate(policy, requests), current?.results);
    assert.throws(() => loadPolicy(old, { strict: true }), { code: 'misconfigured' });
  });
});

/** Users, groups, verbs, resources and namespaces a policy names, and one of each that it does not, in every combination. */
function requestsAbout(text: string): AuditAttributes[] {
  const { rules } = loadPolicy(text, { strict: false }).policy;
  const unique = (words: readonly string[]) => [...new Set([...words, 'other'])];
  const users = unique(rules.flatMap((rule) => rule.users));
  const verbs = unique(rules.flatMap((rule) => rule.verbs));
  const named = rules.flatMap((rule) => rule.resources);
  const resources = unique(named.flatMap((one) => one.resources));
  const apiGroups = unique(named.map((one) => one.group));
  const people = [...users.map((name) => ({ name, groups: [] })), { name: 'x', groups: ['system:nodes'] }];
  const objects = people.flatMap((user) =>
    verbs.flatMap((verb) =>
      resources.flatMap((both) =>
        ['', 'apps', ...apiGroups.slice(-2)].flatMap((apiGroup) =>
          ['kube-system', 'default'].map((namespace) => {
            const [resource = '', subresource = ''] = both.split('/');
            return {
              user,
              verb,
              apiGroup,
              resource,
              subresource,
              namespace,
              name: 'x',
              isResource: true,
              path: '',
            };
          }),
        ),
      ),
    ),
  );
  const urls = ['/healthz', '/healthz/etcd', '/version', '/version/', '/swagger.json', '/metrics'];
  const empty = { apiGroup: '', resource: '', subresource: '', namespace: '', name: '', isResource: false };
  return [...objects, ...urls.map((url) => ({ user: people[0], verb: 'get', ...empty, path: url }))];
}

function toLine({ policy, requests }: Case): string {
  const records = requests.map(({ user, ...rest }) => ({ ...rest, user: user?.name, groups: user?.groups }));
  return JSON.stringify({ policy: Buffer.from(policy).toString('base64'), requests: records });
}

function assertSame({ policy: text, requests }: Case, theirs: Answer): void {
  const context = `seed ${seed}, policy:\n${text}\nKubernetes: ${theirs.error ?? 'accepts'}\nours: `;
  try {
    const { policy, warnings } = loadPolicy(text, { strict: false });
    assert.equal(theirs.error, undefined, `${context}accepts`);
    assert.deepEqual(warnings, theirs.warnings, context);
    assert.deepEqual(evaluate(policy, requests), theirs.results, context);
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError)) throw thrown;
    assert.equal(thrown.code, 'misconfigured');
    assert.notEqual(theirs.error, undefined, `${context}${thrown.message}`);
    // Kubernetes does not say which of a rule's resources it means.
    const ours = thrown.message
      .split('; ')
      .map((fault) => fault.split(': ')[0]?.replace(/(resources)\[\d+\]\./u, '$1.'));
    if (theirs.places.length > 0)
      assert.deepEqual(new Set(ours), new Set(theirs.places), context + thrown.message);
  }
}

function evaluate(policy: Parameters<typeof compilePolicy>[0], requests: readonly AuditAttributes[]) {
  const evaluator = compilePolicy(policy);
  return requests.map((request) => {
    const { level, omitStages, omitManagedFields } = evaluator.evaluate(request);
    return { level, omitStages: [...omitStages].sort(), omitManagedFields };
  });
}
