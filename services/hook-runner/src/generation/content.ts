import { hash } from 'node:crypto';
import { canonicalMembers, canonicalText, type Value } from '@colonnade/value';

export type CompiledPillar = { pillar: Value; secrets: readonly string[] };
type Pillar = { readonly [name: string]: Value };

/** The file of a minion's policies, and what makes two of them the same: a digest of `contentOf`. Each value is written once for both. */
export function policyOf({ pillar, secrets }: CompiledPillar): { text: string; digest: string } {
  const sealed = new Set(secrets);
  let text = '';
  let content = '';
  for (const member of canonicalMembers(pillar as Pillar)) {
    const { name } = member;
    const isSealed = sealed.has(name);
    const key = `${text === '' ? '' : ','}${canonicalText(name)}:`;
    const shown = isSealed ? canonicalText(ciphertextOf((pillar as Pillar)[name] as Value)) : member.text;
    text += key + member.text;
    content += `${key}[${isSealed},${shown}]`;
  }
  return { text: `{${text}}\n`, digest: hash('sha256', `{${content}}`) };
}

/**
 * Names and values, and of a secret its ciphertext alone. Key id, wrapped key and nonces are left out: they change when a
 * key is rotated, and the secret does not.
 */
export function contentOf(pillar: Pillar, secrets: readonly string[] = sealedNames(pillar)) {
  const sealed = new Set(secrets);
  const content: { [name: string]: Value } = Object.create(null);
  for (const [name, value] of Object.entries(pillar)) {
    content[name] = [sealed.has(name), sealed.has(name) ? ciphertextOf(value) : value];
  }
  return content;
}

/** The secrets of a pillar as a file has it: nothing else can be an object with this key. */
export function sealedNames(pillar: Pillar): string[] {
  return Object.keys(pillar).filter((name) => {
    const value = pillar[name];
    return isObject(value) && value.$enc !== undefined;
  });
}

function ciphertextOf(value: Value): Value {
  const sealed = isObject(value) ? value.$enc : undefined;
  // What is not sealed as it should be is compared as it is.
  return isObject(sealed) && typeof sealed.ct_b64 === 'string' ? sealed.ct_b64 : value;
}

function isObject(value: Value | undefined): value is { [name: string]: Value } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
