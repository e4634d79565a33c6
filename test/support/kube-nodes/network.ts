import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { findOnPath } from '@colonnade/embedded/servers';

const run = promisify(execFile);

export type Network = AsyncDisposable & {
  /** The address of this side, which every node reaches. */
  gateway: string;
  /** The address of the node with this number, from 1. */
  address(number: number): string;
  /** The name of that node's network namespace. */
  namespace(number: number): string;
};

/** Why there can be no nodes here, or false. */
export function skipWithoutNodes(): false | string {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'nodes need Linux and root';
  const missing = ['ip', 'unshare', 'cron', 'sudo', 'ssh-keygen'].filter(
    (tool) => findOnPath(tool, process.env).length === 0,
  );
  if (!existsSync('/usr/sbin/sshd')) missing.unshift('sshd');
  return missing.length === 0
    ? false
    : `no ${missing.join(', ')}: apt-get install openssh-server cron sudo iproute2`;
}

/** Why no node can have systemd as its first process, or false. */
export function skipWithoutSystemd(): false | string {
  if (!existsSync('/usr/lib/systemd/systemd')) return 'no systemd on this machine';
  const isOwn = existsSync('/sys/fs/cgroup/systemd') || existsSync('/sys/fs/cgroup/cgroup.controllers');
  return isOwn ? false : 'no cgroup hierarchy for systemd';
}

/** A bridge with a network namespace for each node. */
export async function startNetwork(nodes: number): Promise<Network> {
  const tag = process.pid.toString(36).slice(-5);
  const [bridge, base] = [`cb${tag}`, `10.${211 + (process.pid % 40)}.${Math.floor(process.pid / 40) % 250}`];
  const namespace = (number: number) => `cn${tag}-${number}`;
  const address = (number: number) => `${base}.${10 + number}`;
  const undo: (readonly string[])[] = [];
  const ip = async (...args: string[]) => void (await run('ip', args));
  const dispose = async () => {
    for (const args of undo.reverse()) await run('ip', [...args]).catch(() => undefined);
  };
  try {
    await ip('link', 'add', bridge, 'type', 'bridge');
    undo.push(['link', 'del', bridge]);
    await ip('addr', 'add', `${base}.1/24`, 'dev', bridge);
    await ip('link', 'set', bridge, 'up');
    for (let number = 1; number <= nodes; number += 1) {
      const [name, link] = [namespace(number), `cv${tag}${number}`];
      await ip('netns', 'add', name);
      undo.push(['netns', 'del', name]);
      await ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
      await ip('link', 'set', link, 'master', bridge, 'up');
      await ip('-n', name, 'addr', 'add', `${address(number)}/24`, 'dev', 'eth0');
      await ip('-n', name, 'link', 'set', 'eth0', 'up');
    }
  } catch (error) {
    await dispose();
    throw error;
  }
  return { gateway: `${base}.1`, address, namespace, [Symbol.asyncDispose]: dispose };
}
