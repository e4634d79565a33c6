export { compilePolicy, type PolicyEvaluator } from './evaluate.ts';
export { type LoadedPolicy, loadPolicy } from './load.ts';
export { DEFAULT_POLICY, openPolicySource, type PolicySource, type PolicySourceOptions } from './source.ts';
export type { AuditAttributes, AuditDecision, AuditLevel, AuditPolicy, PolicyRule } from './types.ts';
