import { AUDIT_STAGES } from '@colonnade/contracts';
import { combined, createRuleIndex } from './rule-index.ts';
import type { AuditAttributes, AuditDecision, AuditPolicy, GroupResources, PolicyRule } from './types.ts';

/** A policy made ready for use. */
export type PolicyEvaluator = {
  /** The first rule that matches decides; with none, nothing is recorded. */
  evaluate(attributes: AuditAttributes): AuditDecision;
};

/**
 * Compiles a policy. Rules are first sifted, a word of bits at a time, by the attributes that are looked up; only the
 * few left over are matched in full. Decisions are made once per rule, so that evaluating allocates nothing.
 */
export function compilePolicy(policy: AuditPolicy): PolicyEvaluator {
  const decisions = policy.rules.map((rule) => decisionOf(policy, rule));
  const otherwise = decisionOf(policy, undefined);
  const matchers = policy.rules.map(compileRule);
  const index = createRuleIndex(policy.rules);
  return {
    evaluate(attributes) {
      const found = index.findFirst(attributes, (rule) => matchers[rule]?.(attributes) ?? false);
      return decisions[found] ?? otherwise;
    },
  };
}

function decisionOf(policy: AuditPolicy, rule: PolicyRule | undefined): AuditDecision {
  const omitted = new Set([...policy.omitStages, ...(rule?.omitStages ?? [])]);
  return Object.freeze({
    level: rule?.level ?? 'None',
    omitStages: Object.freeze(AUDIT_STAGES.filter((stage) => omitted.has(stage))),
    omitManagedFields: rule?.omitManagedFields ?? policy.omitManagedFields,
  });
}

type Matcher = (attributes: AuditAttributes) => boolean;

/** The part of a rule that the index leaves open; users, groups, verbs and namespaces are decided there. */
function compileRule(rule: PolicyRule): Matcher {
  if (rule.resources.length > 0) {
    const entries = rule.resources.map(compileResources);
    return (attributes) => entries.some((matches) => matches(attributes));
  }
  if (rule.namespaces.length > 0 || rule.nonResourceURLs.length === 0) return () => true;
  const urls = rule.nonResourceURLs.map(compileUrl);
  return ({ path }) => urls.some((matches) => matches(path));
}

function compileUrl(spec: string): (path: string) => boolean {
  if (spec === '*') return () => true;
  if (!spec.endsWith('*')) return (path) => path === spec;
  const prefix = spec.slice(0, -1);
  return (path) => path.startsWith(prefix);
}

function compileResources(entry: GroupResources): Matcher {
  const anyGroup = entry.group === '*';
  const isGroup: Matcher = ({ apiGroup }) => anyGroup || apiGroup === entry.group;
  if (entry.resources.length === 0) return isGroup;
  const whole = new Set(entry.resources);
  const subresources = new Set(entry.resources.filter((r) => r.startsWith('*/')).map((r) => r.slice(2)));
  const parents = new Set(entry.resources.filter((r) => r.endsWith('/*')).map((r) => r.slice(0, -2)));
  const names = new Set(entry.resourceNames);
  return (attributes) => {
    if (!isGroup(attributes)) return false;
    if (names.size > 0 && !names.has(attributes.name)) return false;
    if (whole.has('*') || whole.has(combined(attributes)) || parents.has(attributes.resource)) return true;
    return attributes.subresource !== '' && subresources.has(attributes.subresource);
  };
}
