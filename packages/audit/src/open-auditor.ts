import type { Bus } from '@colonnade/bus';
import type { BusUser } from '@colonnade/contracts';
import type { Logger, Metrics } from '@colonnade/service-kit';
import { type AuditRecorder, createAuditor } from './event/auditor.ts';
import { type AuditWatch, createAuditWatch } from './event/watch.ts';
import { openPolicySource } from './policy/source.ts';

export type OpenAuditorOptions = {
  bus: Pick<Bus, 'publishDurable' | 'isConnected'>;
  service: BusUser;
  /** As `auditPolicySettings` reads it. */
  config: { auditPolicyFile: string | undefined; auditStrictPolicy: boolean };
  logger: Logger;
  metrics: Metrics;
};

/** What every service writes its records with: its name, its policy file, the common metrics. */
export type OpenAuditor = AsyncDisposable & { auditor: AuditRecorder; watch: AuditWatch };

/** @throws ColonnadeError `misconfigured`: the policy file is not there or is refused */
export function openAuditor(options: OpenAuditorOptions): OpenAuditor {
  const { bus, service, config, logger, metrics } = options;
  const watch = createAuditWatch(logger, metrics);
  const policy = openPolicySource({ file: config.auditPolicyFile, strict: config.auditStrictPolicy, watch });
  return {
    auditor: createAuditor({ bus, service, policy, watch }),
    watch,
    [Symbol.asyncDispose]: () => policy[Symbol.asyncDispose](),
  };
}
