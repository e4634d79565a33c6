import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export type Certificate = { certFile: string; keyFile: string };

/** A certificate authority in a folder, made with the program `openssl`. */
export async function makeAuthority(dir: string, name: string) {
  const ca = filesOf(dir, name);
  await newKey(ca.keyFile);
  await run('openssl', [
    'req',
    '-x509',
    '-new',
    '-key',
    ca.keyFile,
    '-subj',
    `/CN=${name}`,
    '-days',
    '2',
    '-out',
    ca.certFile,
  ]);
  return {
    ...ca,
    /** For a server on 127.0.0.1 and localhost unless said, and for a client of this common name. */
    async issue(commonName: string, names = ['IP:127.0.0.1', 'DNS:localhost']): Promise<Certificate> {
      const files = filesOf(dir, `${name}-${commonName}`);
      const [request, extensions] = [`${files.certFile}.csr`, `${files.certFile}.ext`];
      await newKey(files.keyFile);
      await writeFile(
        extensions,
        `subjectAltName=${names.join(',')}\nextendedKeyUsage=serverAuth,clientAuth\n`,
      );
      await run('openssl', [
        'req',
        '-new',
        '-key',
        files.keyFile,
        '-subj',
        `/CN=${commonName}`,
        '-out',
        request,
      ]);
      const signer = ['-CA', ca.certFile, '-CAkey', ca.keyFile, '-CAcreateserial'];
      await run('openssl', [
        'x509',
        '-req',
        '-in',
        request,
        ...signer,
        '-days',
        '2',
        '-extfile',
        extensions,
        '-out',
        files.certFile,
      ]);
      return files;
    },
  };
}

function filesOf(dir: string, name: string): Certificate {
  return { certFile: path.join(dir, `${name}.crt`), keyFile: path.join(dir, `${name}.key`) };
}

async function newKey(file: string): Promise<void> {
  await run('openssl', ['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', file]);
}
