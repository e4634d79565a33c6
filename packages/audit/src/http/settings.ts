import { oneOf, optionalSetting, setting, zFlag, zPath } from '@colonnade/service-kit';
import { AUDIT_MODES } from './modes.ts';

/** The settings of every service that writes audit records over HTTP. */
export const auditSettings = {
  auditPolicyFile: optionalSetting('AUDIT_POLICY_FILE', zPath, {
    help: 'Audit policy (audit.k8s.io/v1), YAML or JSON, read again on SIGHUP and when it changes; unset: Metadata for everything',
  }),
  auditStrictPolicy: setting('AUDIT_STRICT_POLICY', zFlag, {
    default: 'false',
    help: 'Refuse a policy with unknown or repeated fields instead of warning',
  }),
  auditMode: optionalSetting('AUDIT_MODE', oneOf(AUDIT_MODES), {
    help: 'How requests wait for their records: blocking-strict, blocking or batch; unset: blocking-strict for writes, batch for reads',
  }),
};
