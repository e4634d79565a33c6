import { createHash, createHmac } from 'node:crypto';

/**
 * The key that grants of an API token are signed with: derived, so that crypto-kms can verify a grant without ever
 * seeing the token, and pillar-api cannot make one after the request that carried the token is over.
 * @returns 32 bytes
 */
export function deriveGrantKey(apiToken: string): Buffer {
  return createHmac('sha256', apiToken).update('colonnade/grant/v1').digest();
}

/**
 * `res` of a grant to reseal: the places a batch takes values from and to, in their order, as one digest. JSON keeps the
 * parts apart, so no two lists share one.
 */
export function resealResource(moves: readonly { from: string; to: string }[]): string {
  const places = JSON.stringify(moves.map(({ from, to }) => [from, to]));
  return `sha256:${createHash('sha256').update(places).digest('hex')}`;
}

/** `res` of a grant for one version of a key; a key's name holds no colon. */
export function keyVersionResource(name: string, version: number): string {
  return `${name}:${version}`;
}

const API_TOKEN = /^col_([A-Za-z0-9]{8,32})_([A-Za-z0-9_-]{43})$/u;

/** The public id of an API token `col_<id>_<43 base64url characters>`, or undefined when it is malformed. */
export function apiTokenId(token: string): string | undefined {
  return API_TOKEN.exec(token)?.[1];
}

const ANY_TOKEN = /(col_[A-Za-z0-9]{8,32}_)[\w-]{43}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}/gu;

/** The text without tokens that stand where none belongs, such as a whole API token in place of its id, or a JWT in a URL. */
export function hideTokens(text: string): string {
  if (!text.includes('col_') && !text.includes('eyJ')) return text;
  return text.replace(ANY_TOKEN, (_, id: string | undefined) => `${id ?? ''}*******`);
}

/** Who the API token of the bootstrap file belongs to, for pillar-api and crypto-kms alike. */
export const BOOTSTRAP_SUB = 'bootstrap-admin';
