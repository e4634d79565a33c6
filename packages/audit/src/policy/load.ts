import { LIMITS } from '@colonnade/contracts';
import { goDecode } from './go-decode.ts';
import { policyType, type RawPolicy } from './go-types.ts';
import { type Node, policyError } from './node.ts';
import { readJson } from './read-json.ts';
import { readYaml } from './read-yaml.ts';
import type { AuditPolicy } from './types.ts';
import { type PolicyFault, validatePolicy } from './validate.ts';

export type LoadedPolicy = {
  policy: AuditPolicy;
  /** What is suspicious and accepted all the same: unknown fields, fields given twice, an old apiVersion. */
  warnings: readonly string[];
};

const GROUP = 'audit.k8s.io';
const VERSION = `${GROUP}/v1`;
const OLD_VERSION = `${GROUP}/v1beta1`;
const MAX_BYTES = LIMITS.natsPayloadBytes;

/**
 * Loads an audit policy from YAML or JSON (seed 001). What Kubernetes 1.37 refuses is refused; what it accepts with a
 * warning is accepted with that warning. Beyond Kubernetes, `audit.k8s.io/v1beta1` is read as v1, which it equals.
 * @param options.strict refuse what would be a warning
 * @throws ColonnadeError `misconfigured` naming every place that is at fault
 */
export function loadPolicy(input: string | Uint8Array, options: { strict: boolean }): LoadedPolicy {
  const { node, warnings } = read(input);
  const version = checkKind(node);
  if (version !== VERSION) warnings.push(`apiVersion ${version} is old and read as ${VERSION}`);
  const { value, faults } = goDecode(policyType, node);
  warnings.push(...faults);
  const checked = validatePolicy((value ?? {}) as RawPolicy);
  if (!('rules' in checked)) throw refusal(checked);
  if (options.strict && warnings.length > 0) {
    throw policyError(`refused because it is read strictly: ${warnings.join('; ')}`);
  }
  return { policy: checked, warnings };
}

function read(input: string | Uint8Array): { node: Node; warnings: string[] } {
  const bytes = typeof input === 'string' ? Buffer.from(input) : input;
  if (bytes.length > MAX_BYTES) throw policyError(`larger than ${MAX_BYTES} bytes`);
  const text = Buffer.from(bytes).toString('utf8');
  if (/^\s*\{/u.test(text) && !text.startsWith('\ufeff')) return { node: readJson(text), warnings: [] };
  if (!Buffer.from(text).equals(bytes)) throw policyError('not valid UTF-8');
  // What YAML's character set leaves out; the parser would let it pass.
  const control = text.search(/[\0-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufffe\uffff]|(?!^)\ufeff/u);
  if (control >= 0)
    throw policyError('a control character', `line ${text.slice(0, control).split('\n').length}`);
  const { node, duplicates, ignoredDocuments } = readYaml(text);
  const warnings = duplicates.length === 0 ? [] : [['yaml: unmarshal errors:', ...duplicates].join('\n  ')];
  if (ignoredDocuments > 0) warnings.push('only the first YAML document is read');
  return { node, warnings };
}

/** The apiVersion of a Policy. Kubernetes takes a missing kind for a Policy, and looks for both names in any case. */
function checkKind(node: Node): string {
  if (node.kind !== 'map') throw policyError('a policy is a map', 'the policy');
  const version = textOf(node, 'apiVersion') ?? '';
  const kind = textOf(node, 'kind') ?? '';
  if (version !== VERSION && version !== OLD_VERSION) {
    throw policyError(version === '' ? `missing: ${VERSION}` : `must be ${VERSION}`, 'apiVersion');
  }
  if (kind !== '' && kind !== 'Policy') throw policyError('must be Policy', 'kind');
  return version;
}

function textOf(node: Node & { kind: 'map' }, name: string): string | undefined {
  let found: string | undefined;
  for (const [key, value] of node.entries) {
    if (fold(key) !== fold(name)) continue;
    if (value.kind === 'string') found = value.value;
    else if (value.kind !== 'null') throw policyError('must be a text', key);
  }
  return found;
}

function fold(name: string): string {
  return name.replaceAll('\u017f', 's').toLowerCase();
}

function refusal(faults: readonly PolicyFault[]): Error {
  const [first, ...others] = faults.map(({ place, why }) => ({ place, text: `${place}: ${why}` }));
  const texts = [first?.text, ...others.map(({ text }) => text)];
  return policyError(texts.join('; ').slice((first?.place.length ?? 0) + 2), first?.place);
}
