import { NO_FILE, type NodeFacts } from '../rules/node-facts.ts';
import { caFileOf, type OidcSpec } from '../spec.ts';
import type { NodeAddress } from './find-nodes.ts';
import { type NodePaths, parseLook, runHelper, type Verb } from './helper.ts';
import { isReady, loadedConfig, type ReadyProbe } from './ready.ts';
import { connectSsh, type Ssh, type SshTarget } from './ssh.ts';

/** How the nodes of one IngressTLS are reached in one pass. */
export type Access = {
  ssh: Omit<SshTarget, 'host'>;
  paths: NodePaths;
  probe: ReadyProbe;
};

/** A node that we talk to. The connection is kept, and made again when it has gone. */
export type NodeSession = AsyncDisposable & {
  node: NodeAddress;
  /** @throws ColonnadeError of `connectSsh` and `runHelper` */
  look(access: Access): Promise<NodeFacts>;
  readCa(access: Access): Promise<string>;
  /** What was there before work on it was begun, as it is kept beside the journal. */
  readPrevious(access: Access): Promise<string>;
  ready(access: Access): Promise<boolean>;
  /** SHA-256 of the authentication configuration its API server says it runs with; undefined: it tells of none. */
  loaded(access: Access): Promise<string | undefined>;
  run(access: Access, step: { verb: Verb; args?: readonly string[]; input?: string }): Promise<void>;
};

export function pathsOf(oidc: OidcSpec): NodePaths {
  const { restart, writeKey } = oidc;
  return {
    manifest: restart.manifestPath,
    ca: caFileOf(oidc),
    key: writeKey.enabled ? writeKey.path : undefined,
  };
}

export function createNodeSession(node: NodeAddress): NodeSession {
  let ssh: Ssh | undefined;
  let sign = '';
  const connected = async (access: Access): Promise<Ssh> => {
    // Another key or other pins: whoever was let in by the old ones is not kept.
    const now = JSON.stringify(access.ssh);
    if (ssh?.isOpen() && sign === now) return ssh;
    await ssh?.[Symbol.asyncDispose]();
    ssh = await connectSsh({ ...access.ssh, host: node.address });
    sign = now;
    return ssh;
  };
  const helper = async (access: Access, step: { verb: Verb; args?: readonly string[]; input?: string }) =>
    runHelper(await connected(access), access.paths, { ...step, user: access.ssh.user });
  return {
    node,
    look: async (access) => parseLook(await helper(access, { verb: 'look' })),
    readCa: (access) => helper(access, { verb: 'read-ca' }),
    readPrevious: (access) => helper(access, { verb: 'read-previous' }),
    async ready(access) {
      try {
        return await isReady(await connected(access), access.probe);
      } catch {
        return false;
      }
    },
    async loaded(access) {
      try {
        return await loadedConfig(await connected(access), access.probe);
      } catch {
        return undefined;
      }
    },
    run: async (access, step) => void (await helper(access, step)),
    async [Symbol.asyncDispose]() {
      await ssh?.[Symbol.asyncDispose]();
    },
  };
}

export function hashOnNode(facts: NodeFacts): string {
  return facts.ca?.hash ?? NO_FILE;
}
