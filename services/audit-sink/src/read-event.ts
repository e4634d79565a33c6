import { isUtf8 } from 'node:buffer';
import { AUDIT_LEVELS, AUDIT_STAGES, type DeadLetterReason } from '@colonnade/contracts';
import type { ParsedEvent } from './backends/backend.ts';

export type ReadEvent =
  | { ok: true; event: ParsedEvent; text: string }
  | { ok: false; reason: DeadLetterReason; detail: string };

const STAGES: ReadonlySet<unknown> = new Set(AUDIT_STAGES);
const LEVELS: ReadonlySet<unknown> = new Set(AUDIT_LEVELS);

/**
 * Whether a message of AUDIT is an audit.k8s.io/v1 Event, and a view of its fields. `JSON.parse` loses kinds of numbers, so
 * nothing is ever made from this view: what is written or sent are the bytes that came. It is ten times as fast as the strict
 * parser, and every record passes here.
 */
export function readEvent(payload: Uint8Array): ReadEvent {
  if (!isUtf8(payload)) return { ok: false, reason: 'not_json', detail: 'not UTF-8' };
  const text = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('utf8');
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return { ok: false, reason: 'not_json', detail: 'not JSON' };
  }
  const fault = faultOf(parsed);
  if (fault !== undefined) return { ok: false, reason: 'not_an_event', detail: fault };
  return { ok: true, event: parsed as ParsedEvent, text };
}

function faultOf(parsed: unknown): string | undefined {
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return 'not an object';
  const { kind, apiVersion, auditID, stage, level } = parsed as Record<string, unknown>;
  if (apiVersion !== 'audit.k8s.io/v1') return 'apiVersion is not audit.k8s.io/v1';
  if (kind !== 'Event') return 'kind is not Event';
  if (typeof auditID !== 'string' || auditID === '') return 'auditID is missing';
  if (!STAGES.has(stage)) return 'stage is none of audit.k8s.io/v1';
  if (!LEVELS.has(level)) return 'level is none of audit.k8s.io/v1';
  return undefined;
}
