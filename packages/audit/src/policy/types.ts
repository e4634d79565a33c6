import { AUDIT_LEVELS, AUDIT_STAGES, type AuditStage } from '@colonnade/contracts';

export type AuditLevel = (typeof AUDIT_LEVELS)[number];

/** One entry of a rule's `resources`. */
export type GroupResources = {
  group: string;
  resources: readonly string[];
  resourceNames: readonly string[];
};

/** audit.k8s.io/v1 PolicyRule: an empty list means "any". */
export type PolicyRule = {
  level: AuditLevel;
  users: readonly string[];
  userGroups: readonly string[];
  verbs: readonly string[];
  resources: readonly GroupResources[];
  namespaces: readonly string[];
  nonResourceURLs: readonly string[];
  omitStages: readonly AuditStage[];
  /** Undefined: what the policy says. */
  omitManagedFields: boolean | undefined;
};

/** audit.k8s.io/v1 Policy, checked: at least one rule, and nothing that Kubernetes would refuse. */
export type AuditPolicy = {
  rules: readonly PolicyRule[];
  omitStages: readonly AuditStage[];
  omitManagedFields: boolean;
};

/** What a policy looks at: Kubernetes' authorizer attributes. Texts that do not apply are empty. */
export type AuditAttributes = {
  user: { name: string; groups: readonly string[] } | undefined;
  verb: string;
  /** False: a request for a URL, of which only `path` counts. */
  isResource: boolean;
  apiGroup: string;
  resource: string;
  subresource: string;
  namespace: string;
  name: string;
  path: string;
};

/** What is recorded of one request. */
export type AuditDecision = {
  level: AuditLevel;
  omitStages: readonly AuditStage[];
  omitManagedFields: boolean;
};

export function isLevel(text: string): text is AuditLevel {
  return (AUDIT_LEVELS as readonly string[]).includes(text);
}

export function isStage(text: string): text is AuditStage {
  return (AUDIT_STAGES as readonly string[]).includes(text);
}

/** True when `level` records at least what `least` does. */
export function isAtLeast(level: AuditLevel, least: AuditLevel): boolean {
  return AUDIT_LEVELS.indexOf(level) >= AUDIT_LEVELS.indexOf(least);
}
