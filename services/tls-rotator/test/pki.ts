import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** Certificates of a test, made with `openssl` in a folder. */
export type Issued = { cert: string; key: string; certFile: string; keyFile: string };
export type Authority = Issued & {
  issue(name: string, options?: IssueOptions): Issued;
  intermediate(name: string): Authority;
};
type IssueOptions = {
  names?: readonly string[];
  /** `openssl` times: YYYYMMDDHHMMSSZ. */
  notBefore?: string;
  notAfter?: string;
};

let serial = 0;

/**
 * A certificate authority of its own.
 * @param serial a negative one is read by OpenSSL and refused by Go
 */
export function makeCa(dir: string, name: string, serial?: string): Authority {
  const files = place(dir, name);
  newKey(files.keyFile);
  const numbered = serial === undefined ? [] : ['-set_serial', serial];
  const { keyFile, certFile } = files;
  openssl(
    'req',
    '-x509',
    '-new',
    '-key',
    keyFile,
    '-subj',
    `/CN=${name}`,
    '-days',
    '30',
    ...numbered,
    '-out',
    certFile,
  );
  return authority(dir, files);
}

function authority(dir: string, files: { certFile: string; keyFile: string }): Authority {
  const signed = (name: string, extensions: string, { notBefore, notAfter }: IssueOptions) => {
    const own = place(dir, name);
    newKey(own.keyFile);
    const [request, config] = [`${own.certFile}.csr`, `${own.certFile}.ext`];
    writeFileSync(config, extensions);
    openssl('req', '-new', '-key', own.keyFile, '-subj', `/CN=${name}`, '-out', request);
    const times =
      notAfter === undefined
        ? ['-days', '20']
        : ['-startdate', notBefore ?? '20200101000000Z', '-enddate', notAfter];
    if (notAfter === undefined)
      openssl(
        'x509',
        '-req',
        '-in',
        request,
        '-CA',
        files.certFile,
        '-CAkey',
        files.keyFile,
        '-CAcreateserial',
        ...times,
        '-extfile',
        config,
        '-out',
        own.certFile,
      );
    else signWithDates(dir, { request, config, certFile: own.certFile, ca: files, times });
    return own;
  };
  return {
    ...read(files),
    issue(name, options = {}) {
      const names = options.names ?? ['DNS:localhost', 'IP:127.0.0.1'];
      return read(
        signed(name, `subjectAltName=${names.join(',')}\nextendedKeyUsage=serverAuth,clientAuth\n`, options),
      );
    },
    intermediate: (name) =>
      authority(dir, signed(name, 'basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign\n', {})),
  };
}

/** Only `openssl ca` sets dates in the past. */
function signWithDates(
  dir: string,
  job: {
    request: string;
    config: string;
    certFile: string;
    ca: { certFile: string; keyFile: string };
    times: string[];
  },
): void {
  const database = path.join(dir, `db-${serial++}`);
  writeFileSync(database, '');
  const config = `${database}.conf`;
  writeFileSync(
    config,
    `[ca]\ndefault_ca=d\n[d]\ndatabase=${database}\nnew_certs_dir=${dir}\nrand_serial=yes\ndefault_md=sha256\npolicy=p\nunique_subject=no\n[p]\ncommonName=supplied\n`,
  );
  openssl(
    'ca',
    '-batch',
    '-notext',
    '-config',
    config,
    '-cert',
    job.ca.certFile,
    '-keyfile',
    job.ca.keyFile,
    '-in',
    job.request,
    ...job.times,
    '-extfile',
    job.config,
    '-out',
    job.certFile,
  );
}

function place(dir: string, name: string) {
  const base = path.join(dir, `${name.replaceAll(/[^a-z0-9-]/giu, '_')}-${serial++}`);
  return { certFile: `${base}.crt`, keyFile: `${base}.key` };
}

function read({ certFile, keyFile }: { certFile: string; keyFile: string }): Issued {
  return { certFile, keyFile, cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
}

function newKey(file: string): void {
  openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', file);
}

/** Runs a program that has to succeed. @returns what it printed */
export function runTool(program: string, ...args: string[]): string {
  return execFileSync(program, args, { stdio: ['ignore', 'pipe', 'pipe'] }).toString();
}

function openssl(...args: string[]): void {
  runTool('openssl', ...args);
}
