import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';
import { type Value, valueFromYaml } from '@colonnade/value';
import { z } from 'zod';

/** Where the webhook is and how it is spoken to, as a kubeconfig file says. */
export type WebhookTarget = {
  url: URL;
  tls: {
    ca?: Buffer;
    cert?: Buffer;
    key?: Buffer;
    servername?: string;
    rejectUnauthorized: boolean;
  };
  /** The `Authorization` header; a token file is read each time, since it is rotated. */
  authorization: () => string | undefined;
};

const MAX_FILE_BYTES = 1024 * 1024;

const zCluster = z.object({
  server: z.string(),
  'certificate-authority': z.string().optional(),
  'certificate-authority-data': z.string().optional(),
  'tls-server-name': z.string().optional(),
  'insecure-skip-tls-verify': z.boolean().optional(),
  'proxy-url': z.undefined('proxies are not supported').optional(),
});
const zUser = z.object({
  token: z.string().optional(),
  tokenFile: z.string().optional(),
  'client-certificate': z.string().optional(),
  'client-certificate-data': z.string().optional(),
  'client-key': z.string().optional(),
  'client-key-data': z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
  exec: z.undefined('credential plugins are not supported').optional(),
  'auth-provider': z.undefined('authentication providers are not supported').optional(),
});
const zKubeconfig = z.object({
  'current-context': z.string().optional(),
  contexts: z.array(
    z.object({ name: z.string(), context: z.object({ cluster: z.string(), user: z.string().optional() }) }),
  ),
  clusters: z.array(z.object({ name: z.string(), cluster: zCluster })),
  users: z.array(z.object({ name: z.string(), user: zUser.nullish() })).nullish(),
});
type Cluster = z.infer<typeof zCluster>;
type User = z.infer<typeof zUser>;

/**
 * Reads a kubeconfig file as `--audit-webhook-config-file` takes it (seed 001): the cluster and user of the current context.
 * Relative paths are relative to the file.
 * @throws ColonnadeError `misconfigured` that names what is wrong, never a credential
 */
export function readKubeconfig(file: string): WebhookTarget {
  const config = parse(file);
  const { cluster, user } = choose(file, config);
  const fault = (text: string) => new ColonnadeError('misconfigured', `${file}: ${text}`);
  const load = (name: string, data: string | undefined, at: string | undefined) => {
    if (data !== undefined) return Buffer.from(data, 'base64');
    if (at === undefined) return undefined;
    try {
      return readFileSync(path.resolve(path.dirname(file), at));
    } catch {
      throw fault(`${name} names ${at}, which cannot be read`);
    }
  };
  if (!URL.canParse(cluster.server)) throw fault('server is not a URL');
  const url = new URL(cluster.server);
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw fault('server must be http:// or https://');
  const cert = load('client-certificate', user['client-certificate-data'], user['client-certificate']);
  const key = load('client-key', user['client-key-data'], user['client-key']);
  if ((cert === undefined) !== (key === undefined))
    throw fault('a client certificate needs its key, and a key its certificate');
  const ca = load(
    'certificate-authority',
    cluster['certificate-authority-data'],
    cluster['certificate-authority'],
  );
  const servername = cluster['tls-server-name'];
  return {
    url,
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(servername === undefined ? {} : { servername }),
      rejectUnauthorized: cluster['insecure-skip-tls-verify'] !== true,
    },
    authorization: authorizationOf(file, user),
  };
}

function parse(file: string): z.infer<typeof zKubeconfig> {
  let tree: Value;
  try {
    tree = valueFromYaml(readFileSync(file, 'utf8'), { maxBytes: MAX_FILE_BYTES });
  } catch (cause) {
    throw new ColonnadeError('misconfigured', `${file} is not a readable kubeconfig file`, { cause });
  }
  const result = zKubeconfig.safeParse(tree);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new ColonnadeError(
    'misconfigured',
    `${file}: ${issue?.path.join('.') || 'the document'}: ${issue?.message}`,
  );
}

function choose(file: string, config: z.infer<typeof zKubeconfig>): { cluster: Cluster; user: User } {
  const fault = (text: string) => new ColonnadeError('misconfigured', `${file}: ${text}`);
  const name = config['current-context'];
  if (!name) throw fault('current-context is missing');
  const context = config.contexts.find((c) => c.name === name)?.context;
  if (context === undefined) throw fault('current-context names no context');
  const cluster = config.clusters.find((c) => c.name === context.cluster)?.cluster;
  if (cluster === undefined) throw fault('the context names no cluster');
  if (!context.user) return { cluster, user: {} };
  const found = config.users?.find((u) => u.name === context.user);
  if (found === undefined) throw fault('the context names no user');
  return { cluster, user: found.user ?? {} };
}

function authorizationOf(file: string, user: User): WebhookTarget['authorization'] {
  const { token, tokenFile, username, password } = user;
  // client-go: the file wins over the token beside it.
  if (tokenFile !== undefined) {
    const at = path.resolve(path.dirname(file), tokenFile);
    return () => `Bearer ${readFileSync(at, 'utf8').trim()}`;
  }
  if (token !== undefined) return () => `Bearer ${token}`;
  if (username === undefined) return () => undefined;
  const basic = Buffer.from(`${username}:${password ?? ''}`).toString('base64');
  return () => `Basic ${basic}`;
}
