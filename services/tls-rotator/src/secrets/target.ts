import { CREATED_FOR, type Secret } from '../kube/objects.ts';
import { hashOf } from '../rules/certificates.ts';

/** What is remembered of a Secret: hashes instead of keys, so that no private key stays in memory. */
export type TargetView = {
  uid: string;
  resourceVersion: string;
  /** Of `tls.crt` and `tls.key`, as they stand in the object. */
  hash: string;
  immutable: boolean;
  /** UID of the IngressTLS it was made for; undefined: somebody else made it. */
  createdFor: string | undefined;
};

/** The two fields of a target, base64, as the source has them. */
export type TargetData = { 'tls.crt': string; 'tls.key': string };

export function viewOf(secret: Secret): TargetView {
  const { metadata, immutable, data } = secret;
  return {
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    hash: dataHash({ 'tls.crt': data?.['tls.crt'] ?? '', 'tls.key': data?.['tls.key'] ?? '' }),
    immutable: immutable === true,
    createdFor: metadata.annotations?.[CREATED_FOR],
  };
}

/** Equal for equal fields. */
export function dataHash(data: TargetData): string {
  return hashOf(`${data['tls.crt']}\n${data['tls.key']}`);
}
