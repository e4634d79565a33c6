import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

/** The texts of the source Secret (seed 004): fullchain, key, and the CA bundle where one is asked for. */
export type SourceMaterial = {
  crt: string;
  key: string;
  ca?: string | undefined;
  /** Of `writeKey`. */
  extraKey?: string | undefined;
};

export type SourceFacts = {
  /** Of fullchain and key together: two materials with the same hash are the same. */
  hash: string;
  /** The moment the first certificate of chain or bundle expires, milliseconds since 1970: then the source is refused. */
  notAfterMs: number;
  /** SHA-256 of the leaf, hexadecimal. */
  leafFingerprint: string;
  /** SHA-256 of the text of the fullchain. */
  chainFingerprint: string;
  /** The CA bundle in the form in which it is written: each certificate once, in its order. */
  caBundle: string | undefined;
};

export type SourceVerdict = { ok: true; facts: SourceFacts } | { ok: false; faults: readonly Fault[] };

/** What is wrong; `check` is stable, the reason is for people and never repeats the material. */
export type Fault = { check: CheckName; reason: string };
export type CheckName = 'pem' | 'key' | 'chain' | 'dates' | 'ca-bundle';

const MAX_BYTES = 256 * 1024;
/** Certificates in one file; beyond that somebody has put a trust store in. */
const MAX_CERTIFICATES = 64;
const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/gu;

/**
 * Checks everything before anything is written (seed 004: a leaf without its intermediates breaks Go clients). Each
 * fault names the check that failed, and nothing of the key.
 * @param nowMs milliseconds since 1970
 */
export function checkSource(material: SourceMaterial, nowMs: number): SourceVerdict {
  const chain = readCertificates(material.crt, 'tls.crt');
  const bundle = material.ca === undefined ? undefined : readCertificates(material.ca, 'the CA bundle');
  const faults: Fault[] = [...chain.faults, ...(bundle?.faults ?? [])];
  const [leaf] = chain.certificates;
  const key = readKey(material.key, 'tls.key');
  if (typeof key === 'string') faults.push({ check: 'key', reason: key });
  faults.push(...extraKeyFaults(material.extraKey));
  if (leaf !== undefined) {
    if (typeof key !== 'string' && !leaf.checkPrivateKey(key)) {
      faults.push({ check: 'key', reason: 'tls.key is not the key of the first certificate of tls.crt' });
    }
    faults.push(...chainFaults(chain.certificates, bundle?.certificates));
    faults.push(...dateFaults(chain.certificates, 'tls.crt', nowMs));
  }
  if (bundle !== undefined) faults.push(...bundleFaults(bundle.certificates, nowMs));
  if (faults.length > 0 || leaf === undefined) return { ok: false, faults };
  return {
    ok: true,
    facts: {
      hash: hashOf(`${material.crt}\0${material.key}`),
      notAfterMs: Math.min(
        ...[...chain.certificates, ...(bundle?.certificates ?? [])].map((c) => Date.parse(c.validTo)),
      ),
      chainFingerprint: hashOf(material.crt),
      leafFingerprint: createHash('sha256').update(leaf.raw).digest('hex'),
      caBundle: bundle === undefined ? undefined : writeBundle(bundle.certificates),
    },
  };
}

/** SHA-256 as hexadecimal. */
export function hashOf(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

/** The certificates of a PEM text; what else stands between the blocks is a comment, as everywhere. */
function readCertificates(text: string, what: string): { certificates: X509Certificate[]; faults: Fault[] } {
  const fail = (reason: string) => ({ certificates: [], faults: [{ check: 'pem' as const, reason }] });
  if (text.length > MAX_BYTES) return fail(`${what} is larger than ${MAX_BYTES} bytes`);
  const blocks = [...text.matchAll(BLOCK)];
  if (blocks.length === 0) return fail(`${what} holds no PEM block`);
  // A block cut off is no match: the count of beginnings tells.
  if ((text.match(/-----BEGIN /gu) ?? []).length !== blocks.length) return fail(`${what} is cut off`);
  if (blocks.length > MAX_CERTIFICATES)
    return fail(`${what} holds more than ${MAX_CERTIFICATES} certificates`);
  const certificates: X509Certificate[] = [];
  for (const [index, [block, label]] of blocks.entries()) {
    if (label !== 'CERTIFICATE') {
      const secret = label?.endsWith('PRIVATE KEY') ? 'a private key' : 'something else';
      return fail(`block ${index + 1} of ${what} is ${secret}, not a certificate`);
    }
    try {
      certificates.push(new X509Certificate(block));
    } catch {
      return fail(`block ${index + 1} of ${what} is not a readable certificate`);
    }
  }
  return { certificates, faults: [] };
}

function readKey(text: string, what: string): KeyObject | string {
  if (text.length > MAX_BYTES) return `${what} is larger than ${MAX_BYTES} bytes`;
  if ((text.match(/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/gu) ?? []).length !== 1)
    return `${what} does not hold exactly one private key in PEM`;
  if (/ENCRYPTED/u.test(text)) return `${what} is encrypted; nobody there can open it`;
  try {
    return createPrivateKey(text);
  } catch {
    return `${what} is not a readable private key`;
  }
}

/** It becomes a file of root's on every node as it is: a key, and nothing that means something else there. */
function extraKeyFaults(text: string | undefined): Fault[] {
  if (text === undefined) return [];
  const what = 'the key of writeKey';
  const key = readKey(text, what);
  if (typeof key === 'string') return [{ check: 'key', reason: key }];
  if (text.replaceAll(BLOCK, '').trim() === '') return [];
  return [{ check: 'key', reason: `${what} holds something else beside the key` }];
}

/** Leaf first, each certificate signed by the next one, and the last one by the bundle where there is one. */
function chainFaults(
  chain: readonly X509Certificate[],
  bundle: readonly X509Certificate[] | undefined,
): Fault[] {
  const fault = (reason: string): Fault[] => [{ check: 'chain', reason }];
  for (const [index, certificate] of chain.entries()) {
    if (index > 0 && !certificate.ca)
      return fault(
        `certificate ${index + 1} of tls.crt is not a CA: the leaf stands first, then its issuers`,
      );
    const issuer = chain[index + 1];
    if (issuer !== undefined && !isIssuedBy(certificate, issuer))
      return fault(`certificate ${index + 1} of tls.crt is not issued by the one after it`);
  }
  const last = chain.at(-1) as X509Certificate;
  if (chain.length === 1 && last.ca && !isSelfSigned(last))
    return fault('tls.crt begins with a CA certificate: the leaf is missing');
  if (bundle === undefined || bundle.length === 0) return [];
  if (bundle.some((ca) => ca.fingerprint256 === last.fingerprint256 || isIssuedBy(last, ca))) return [];
  return fault(
    'the last certificate of tls.crt is not issued by any CA of the bundle: is an intermediate missing?',
  );
}

function dateFaults(certificates: readonly X509Certificate[], what: string, nowMs: number): Fault[] {
  return certificates.flatMap((certificate, index): Fault[] => {
    const at = `certificate ${index + 1} of ${what}`;
    if (Date.parse(certificate.validTo) <= nowMs)
      return [{ check: 'dates', reason: `${at} expired at ${certificate.validTo}` }];
    if (Date.parse(certificate.validFrom) > nowMs)
      return [{ check: 'dates', reason: `${at} is not valid before ${certificate.validFrom}` }];
    return [];
  });
}

function bundleFaults(bundle: readonly X509Certificate[], nowMs: number): Fault[] {
  const noCa = bundle.findIndex((certificate) => !certificate.ca);
  const faults = dateFaults(bundle, 'the CA bundle', nowMs);
  if (noCa < 0) return faults;
  return [{ check: 'ca-bundle', reason: `certificate ${noCa + 1} of the CA bundle is not a CA` }, ...faults];
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  try {
    return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
  } catch {
    return false;
  }
}

function isSelfSigned(certificate: X509Certificate): boolean {
  return isIssuedBy(certificate, certificate);
}

/** PEM of certificates, each once, in the order given. */
function writeBundle(certificates: readonly X509Certificate[]): string {
  const unique = new Map(certificates.map((c) => [c.fingerprint256, c.toString().trim()]));
  return `${[...unique.values()].join('\n')}\n`;
}

/**
 * A bundle that trusts both: the new certificates first, then those of what is on a node now. What cannot be read
 * there is left out: an API server could not read it either.
 */
export function joinBundles(newBundle: string, present: string): string {
  const certificates = [newBundle, present].flatMap((text) => lenientCertificates(text));
  return writeBundle(certificates);
}

/** Whether every certificate of `wanted` stands in `present`. */
export function bundleHolds(present: string, wanted: string): boolean {
  const there = new Set(lenientCertificates(present).map((c) => c.fingerprint256));
  return lenientCertificates(wanted).every((c) => there.has(c.fingerprint256));
}

function lenientCertificates(text: string): X509Certificate[] {
  return [...text.matchAll(BLOCK)].flatMap(([block]) => {
    try {
      return [new X509Certificate(block)];
    } catch {
      return [];
    }
  });
}
