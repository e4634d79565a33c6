export { compilePolicy, type PolicyEvaluator } from './evaluate.ts';
export { type LoadedPolicy, loadPolicy } from './load.ts';
export { DEFAULT_POLICY, openPolicySource, type PolicySource, type PolicySourceOptions } from './source.ts';
export {
  type AuditAttributes,
  type AuditDecision,
  type AuditLevel,
  type AuditPolicy,
  isAtLeast,
  type PolicyRule,
} from './types.ts';
