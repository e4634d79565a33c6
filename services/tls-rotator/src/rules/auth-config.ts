import { ColonnadeError } from '@colonnade/contracts';
import { type Document, isMap, isSeq, parseDocument, Scalar, type YAMLMap } from 'yaml';

/**
 * The CA of an issuer in the text of an AuthenticationConfiguration (Kubernetes ≥ 1.30); empty: there is none.
 * @throws ColonnadeError `unprocessable`: it is no such file, or does not know the issuer
 */
export function readIssuerCa(text: string, issuerUrl: string): string {
  const ca: unknown = issuerOf(parseConfig(text), issuerUrl).get('certificateAuthority');
  return typeof ca === 'string' ? ca : '';
}

/**
 * The text with another CA of that issuer; all else, comments included, stays, white space aside.
 * @throws ColonnadeError `unprocessable` as `readIssuerCa`
 */
export function writeIssuerCa(text: string, issuerUrl: string, bundle: string): string {
  const document = parseConfig(text);
  const value = new Scalar(bundle);
  value.type = Scalar.BLOCK_LITERAL;
  issuerOf(document, issuerUrl).set('certificateAuthority', value);
  return document.toString({ lineWidth: 0 });
}

function parseConfig(text: string): Document.Parsed {
  const document = parseDocument(text);
  if (document.errors.length > 0) throw refuse('is not valid YAML');
  if (document.get('kind') !== 'AuthenticationConfiguration')
    throw refuse('is no AuthenticationConfiguration');
  return document;
}

function issuerOf(document: Document.Parsed, issuerUrl: string): YAMLMap {
  const authenticators = document.get('jwt');
  const issuers = isSeq(authenticators)
    ? authenticators.items.filter(isMap).map((one) => one.get('issuer'))
    : [];
  const found = issuers.filter(isMap).find((issuer) => issuer.get('url') === issuerUrl);
  if (found === undefined) throw refuse('has no issuer with the url of spec.apiServerOIDC.reload.issuerURL');
  return found;
}

function refuse(what: string): ColonnadeError {
  return new ColonnadeError('unprocessable', `the file at spec.apiServerOIDC.reload.configPath ${what}`);
}

const LOADED =
  /^apiserver_authentication_config_controller_last_config_info\{[^}]*\bhash="sha256:([0-9a-f]{64})"/u;

/**
 * SHA-256 of the configuration an API server runs with, from a line of its metrics.
 * @returns undefined: the line tells of something else
 */
export function readLoadedHash(line: string): string | undefined {
  return LOADED.exec(line)?.[1];
}
