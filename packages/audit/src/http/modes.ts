/** How a request waits for its records, as kube-apiserver's `--audit-log-mode`. */
export const AUDIT_MODES = ['blocking-strict', 'blocking', 'batch'] as const;
export type AuditMode = (typeof AUDIT_MODES)[number];

const READS: ReadonlySet<string> = new Set(['get', 'list', 'watch', 'head', 'options']);

export type ModeFacts = {
  /** AUDIT_MODE, when it is set. */
  asked: AuditMode | undefined;
  verb: string;
  /** A change, a reveal, a key operation or a merge. */
  floor: boolean;
  denied: boolean;
};

/**
 * Unless told otherwise, what changes something and what is denied is `blocking-strict`, and what reads is `batch`. A
 * floor is strict whatever was said.
 */
export function modeOf({ asked, verb, floor, denied }: ModeFacts): AuditMode {
  if (floor) return 'blocking-strict';
  if (asked !== undefined) return asked;
  return READS.has(verb) && !denied ? 'batch' : 'blocking-strict';
}
