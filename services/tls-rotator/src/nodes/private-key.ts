import { createPrivateKey, type KeyObject, randomBytes } from 'node:crypto';
import { ColonnadeError } from '@colonnade/contracts';

/**
 * The text of a private key in a form that the SSH library reads: it takes OpenSSH's and the older PEM forms as they
 * are, PKCS#8 has to be written anew.
 * @throws ColonnadeError `unprocessable`: unreadable, encrypted, or of a kind that SSH does not use
 */
export function readSshKey(text: string): string {
  if (!/-----BEGIN PRIVATE KEY-----/u.test(text)) return text;
  let key: KeyObject;
  try {
    key = createPrivateKey(text);
  } catch {
    throw new ColonnadeError('unprocessable', 'the SSH key is not a readable PKCS#8 key');
  }
  if (key.asymmetricKeyType === 'rsa') return key.export({ type: 'pkcs1', format: 'pem' }).toString();
  if (key.asymmetricKeyType === 'ec') return key.export({ type: 'sec1', format: 'pem' }).toString();
  if (key.asymmetricKeyType === 'ed25519') return writeOpenSsh(key);
  throw new ColonnadeError(
    'unprocessable',
    `an SSH key cannot be of the kind ${key.asymmetricKeyType ?? 'unknown'}`,
  );
}

/** PROTOCOL.key of OpenSSH; Ed25519 has no other form that SSH programs read. */
function writeOpenSsh(key: KeyObject): string {
  const { x = '', d = '' } = key.export({ format: 'jwk' });
  const [open, secret] = [Buffer.from(x, 'base64url'), Buffer.from(d, 'base64url')];
  const type = field(Buffer.from('ssh-ed25519'));
  const publicBlob = Buffer.concat([type, field(open)]);
  const check = randomBytes(4);
  const plain = Buffer.concat([
    check,
    check,
    type,
    field(open),
    field(Buffer.concat([secret, open])),
    field(Buffer.alloc(0)),
  ]);
  const padding = Buffer.from(Array.from({ length: (8 - (plain.length % 8)) % 8 }, (_, i) => i + 1));
  const none = field(Buffer.from('none'));
  const count = Buffer.from([0, 0, 0, 1]);
  const magic = Buffer.from('openssh-key-v1\0');
  const all = Buffer.concat([
    magic,
    none,
    none,
    field(Buffer.alloc(0)),
    count,
    field(publicBlob),
    field(Buffer.concat([plain, padding])),
  ]);
  const lines = all.toString('base64').match(/.{1,70}/gu) ?? [];
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.join('\n')}\n-----END OPENSSH PRIVATE KEY-----\n`;
}

function field(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
