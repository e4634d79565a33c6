/** How a request waits for its records, as kube-apiserver's `--audit-log-mode`. */
export const AUDIT_MODES = ['blocking-strict', 'blocking', 'batch'] as const;
export type AuditMode = (typeof AUDIT_MODES)[number];

const READS: ReadonlySet<string> = new Set(['get', 'list', 'watch', 'head', 'options']);

export type ModeFacts = {
  /** AUDIT_MODE, when it is set. */
  asked: AuditMode | undefined;
  verb: string;
  /** A reveal, key operation or merge. */
  floor: boolean;
  denied: boolean;
};

/**
 * Unless told otherwise, what changes something is `blocking-strict` and what reads is `batch`. A floor is always
 * strict, and a denial is at least waited for.
 */
export function modeOf({ asked, verb, floor, denied }: ModeFacts): AuditMode {
  if (floor) return 'blocking-strict';
  const mode = asked ?? (READS.has(verb) ? 'batch' : 'blocking-strict');
  return denied && mode === 'batch' ? 'blocking' : mode;
}
