import { oneOf, optionalSetting, setting, zFlag, zPath } from '@colonnade/service-kit';
import { AUDIT_MODES } from './http/modes.ts';

/** The settings of every service that writes audit records. */
export const auditPolicySettings = {
  auditPolicyFile: optionalSetting('AUDIT_POLICY_FILE', zPath, {
    help: 'audit policy (`audit.k8s.io/v1`, YAML or JSON), read again on SIGHUP and when it changes; unset: Metadata for everything',
  }),
  auditStrictPolicy: setting('AUDIT_STRICT_POLICY', zFlag, {
    default: 'false',
    help: 'refuse a policy with unknown or repeated fields instead of warning',
  }),
};

/** Those and what concerns HTTP. */
export const auditSettings = {
  ...auditPolicySettings,
  auditMode: optionalSetting('AUDIT_MODE', oneOf(AUDIT_MODES), {
    help: 'how reads and denials wait for their records: `blocking-strict`, `blocking` or `batch`; unset: `batch` for reads, `blocking-strict` for denials; changes are always `blocking-strict`',
  }),
};
