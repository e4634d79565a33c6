import type { ObjectRef } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';

export type AuditUser = { username: string; groups: readonly string[] };

/** Who does what to which object: the facts known when a request arrives (seed 001). */
export type AuditRequest = {
  verb: string;
  /** As the client sent it; on the bus `nats:` and the subject. Without an objectRef its path is what policies see. */
  requestURI: string;
  user: AuditUser;
  sourceIPs?: readonly string[];
  userAgent?: string;
  /** Present: a request for a resource. The API group is `colonnade` unless it says otherwise. */
  objectRef?: ObjectRef;
  /** The client's Audit-ID, when it sent a well-formed one; never used as message id. */
  auditID?: string;
  /**
   * Recorded at Metadata at least and at every stage, whatever the policy says. True unless said otherwise: what a
   * service records by hand is a reveal, a key operation or a merge.
   */
  floor?: boolean;
  /** On the record of every stage. */
  annotations?: Readonly<Record<string, string>>;
};

export type AuditOutcome = {
  /** As an HTTP status. */
  code: number;
  reason?: string;
  message?: string;
  annotations?: Readonly<Record<string, string>>;
  /** Recorded only where the level asks for them; secrets are already masked. */
  requestObject?: Value;
  responseObject?: Value;
};
