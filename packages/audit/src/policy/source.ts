import { readFileSync, statSync } from 'node:fs';
import type { AuditWatch } from '../event/watch.ts';
import { compilePolicy, type PolicyEvaluator } from './evaluate.ts';
import { loadPolicy } from './load.ts';
import { policyError } from './node.ts';
import type { AuditPolicy, PolicyRule } from './types.ts';

/** The policy in force. Disposing stops looking for another. */
export type PolicySource = PolicyEvaluator &
  AsyncDisposable & {
    /** Reads the file again. A policy that is refused changes nothing. @returns whether there is a new one */
    reload(): boolean;
  };

export type PolicySourceOptions = {
  /** Undefined: DEFAULT_POLICY. */
  file: string | undefined;
  /** Refuse what Kubernetes would only warn of. */
  strict: boolean;
  watch: Pick<AuditWatch, 'policyLoaded' | 'policyRefused'>;
  /** How often the file is looked at, milliseconds. */
  pollMs?: number;
};

const ANY_REQUEST: PolicyRule = {
  level: 'Metadata',
  users: [],
  userGroups: [],
  verbs: [],
  resources: [],
  namespaces: [],
  nonResourceURLs: [],
  omitStages: [],
  omitManagedFields: undefined,
};

/**
 * Everything at Metadata: who did what, when, with what result; no bodies. Only the probes of liveness and readiness,
 * which come every few seconds from nobody, are left out.
 */
export const DEFAULT_POLICY: AuditPolicy = {
  rules: [{ ...ANY_REQUEST, level: 'None', nonResourceURLs: ['/healthz', '/readyz'] }, ANY_REQUEST],
  omitStages: [],
  omitManagedFields: false,
};

/**
 * Loads the policy, and again on SIGHUP at once, and when the file has changed and is no longer being written: also when it was
 * replaced, or is a link that points elsewhere now, as in a mounted ConfigMap.
 * @throws ColonnadeError `misconfigured`: there is no policy to begin with
 */
export function openPolicySource(options: PolicySourceOptions): PolicySource {
  const { file, strict, watch, pollMs = 1000 } = options;
  if (file === undefined) return fixedSource();
  let state = lookAt(file);
  let text = read(file);
  let evaluator = load(text, strict, watch, file);

  const reload = (): boolean => {
    try {
      state = lookAt(file);
      const now = read(file);
      if (now.equals(text)) return false;
      text = now;
      evaluator = load(now, strict, watch, file);
      return true;
    } catch (error) {
      watch.policyRefused({ error });
      return false;
    }
  };
  let seen = state;
  const look = () => {
    const now = lookAt(file);
    // One that is being written may have only its first rules yet, and be a policy all the same: it has to stay as it is for a look.
    if (now !== state && now === seen) reload();
    seen = now;
  };
  const timer = setInterval(look, pollMs).unref();
  const onSignal = () => void reload();
  process.on('SIGHUP', onSignal);
  return {
    evaluate: (attributes) => evaluator.evaluate(attributes),
    reload,
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      process.off('SIGHUP', onSignal);
    },
  };
}

function fixedSource(): PolicySource {
  const evaluator = compilePolicy(DEFAULT_POLICY);
  // A service without a policy file is not ended by the signal that means "read it again" either.
  const onSignal = () => {};
  process.on('SIGHUP', onSignal);
  return {
    evaluate: (attributes) => evaluator.evaluate(attributes),
    reload: () => false,
    async [Symbol.asyncDispose]() {
      process.off('SIGHUP', onSignal);
    },
  };
}

function load(text: Buffer, strict: boolean, watch: PolicySourceOptions['watch'], file: string) {
  try {
    const { policy, warnings } = loadPolicy(text, { strict });
    watch.policyLoaded({ rules: policy.rules.length, warnings });
    return compilePolicy(policy);
  } catch (cause) {
    throw policyError(`audit policy ${file}: ${(cause as Error).message}`, undefined, cause);
  }
}

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw policyError(`audit policy ${file}: cannot be read`, undefined, cause);
  }
}

/** What changes when a file is written, replaced, removed or linked elsewhere. */
function lookAt(file: string): string {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found === undefined
    ? 'none'
    : `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}:${found.ctimeNs}`;
}
