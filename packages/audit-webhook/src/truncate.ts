import { canonicalBytes, parseValue, type ValueObject } from '@colonnade/value';

/** Deeper than any of our own bodies: objects of Kubernetes are nested more than pillars are. */
const MAX_DEPTH = 512;

/**
 * The event without request and response object, and with the annotation that says so (k8s.io/apiserver
 * plugin/pkg/audit/truncate). Everything else stays exactly as it was.
 * @throws ValueError when the event is no JSON that can be kept exactly
 */
export function truncateEvent(payload: Uint8Array): Uint8Array {
  const event = parseValue(payload, { maxDepth: MAX_DEPTH }) as ValueObject;
  const { requestObject: _request, responseObject: _response, ...rest } = event;
  const annotations = { ...(rest.annotations as ValueObject | undefined), 'audit.k8s.io/truncated': 'true' };
  return canonicalBytes({ ...rest, annotations });
}
