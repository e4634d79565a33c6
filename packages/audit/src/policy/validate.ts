import { AUDIT_LEVELS, AUDIT_STAGES } from '@colonnade/contracts';
import type { RawPolicy, RawRule } from './go-types.ts';
import { quote } from './node.ts';
import { type AuditPolicy, type GroupResources, isLevel, isStage, type PolicyRule } from './types.ts';

/** What is wrong with a policy, and where: `rules[3].resources[0].group`. */
export type PolicyFault = { place: string; why: string };

type Report = (place: string, why: string) => void;

/**
 * Checks what decoding leaves open, as k8s.io/apiserver/pkg/apis/audit/validation does.
 * @returns the policy, or every fault
 */
export function validatePolicy(raw: RawPolicy): AuditPolicy | readonly PolicyFault[] {
  const faults: PolicyFault[] = [];
  const report: Report = (place, why) => void faults.push({ place, why });
  checkStages(raw.omitStages, 'omitStages', report);
  const rules = raw.rules ?? [];
  for (const [index, rule] of rules.entries()) checkRule(rule ?? {}, `rules[${index}]`, report);
  if (faults.length === 0 && rules.length === 0) report('rules', 'a policy needs at least one rule');
  if (faults.length > 0) return faults;
  return {
    rules: rules.map((rule) => toRule(rule ?? {})),
    omitStages: toTexts(raw.omitStages).filter(isStage),
    omitManagedFields: raw.omitManagedFields ?? false,
  };
}

function checkRule(rule: RawRule, place: string, report: Report): void {
  checkLevel(rule.level ?? '', `${place}.level`, report);
  checkUrls(toTexts(rule.nonResourceURLs), `${place}.nonResourceURLs`, report);
  for (const [index, entry] of (rule.resources ?? []).entries()) {
    checkResources(toResources(entry), `${place}.resources[${index}]`, report);
  }
  checkStages(rule.omitStages, `${place}.omitStages`, report);
  const ofResources = (rule.resources ?? []).length > 0 || (rule.namespaces ?? []).length > 0;
  if (ofResources && (rule.nonResourceURLs ?? []).length > 0) {
    report(`${place}.nonResourceURLs`, 'a rule cannot be for resources and for non-resource URLs');
  }
}

function checkLevel(level: string, place: string, report: Report): void {
  if (isLevel(level)) return;
  report(place, level === '' ? 'a rule needs a level' : `must be one of ${AUDIT_LEVELS.join(', ')}`);
}

function checkUrls(urls: readonly string[], place: string, report: Report): void {
  for (const [index, url] of urls.entries()) {
    if (url === '*') continue;
    if (!url.startsWith('/')) report(`${place}[${index}]`, 'must begin with "/", or be "*"');
    if (url.slice(0, -1).includes('*')) {
      report(`${place}[${index}]`, '"*" may only be the last character');
    }
  }
}

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const SUBDOMAIN_MAX = 253;

function checkResources(entry: GroupResources, place: string, report: Report): void {
  const { group, resources, resourceNames } = entry;
  const isGroup = group === '' || group === '*' || (group.length <= SUBDOMAIN_MAX && SUBDOMAIN.test(group));
  if (!isGroup) {
    report(`${place}.group`, `${quote(group)} is no API group: a DNS name in lower case, without a version`);
  }
  if (resourceNames.length > 0 && resources.length === 0) {
    report(`${place}.resourceNames`, 'names need at least one resource');
  }
}

function checkStages(stages: RawPolicy['omitStages'], place: string, report: Report): void {
  for (const [index, stage] of toTexts(stages).entries()) {
    if (!isStage(stage)) report(`${place}[${index}]`, `must be one of ${AUDIT_STAGES.join(', ')}`);
  }
}

function toRule(rule: RawRule): PolicyRule {
  const { level = '' } = rule;
  return {
    level: isLevel(level) ? level : 'None',
    users: toTexts(rule.users),
    userGroups: toTexts(rule.userGroups),
    verbs: toTexts(rule.verbs),
    resources: (rule.resources ?? []).map(toResources),
    namespaces: toTexts(rule.namespaces),
    nonResourceURLs: toTexts(rule.nonResourceURLs),
    omitStages: toTexts(rule.omitStages).filter(isStage),
    omitManagedFields: rule.omitManagedFields,
  };
}

function toResources(entry: NonNullable<RawRule['resources']>[number] | undefined): GroupResources {
  return {
    group: entry?.group ?? '',
    resources: toTexts(entry?.resources),
    resourceNames: toTexts(entry?.resourceNames),
  };
}

/** `null` in a list of texts is the empty text, as in Go. */
function toTexts(list: readonly (string | undefined)[] | undefined): readonly string[] {
  return (list ?? []).map((text) => text ?? '');
}
