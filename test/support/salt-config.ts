import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { SaltOptions } from './salt.ts';

const guard = path.join(import.meta.dirname, '..', '..', 'infra', 'salt', 'colonnade_salt', 'file_roots');

export type SaltConfig = {
  options: SaltOptions;
  /** Everything of both lies below it. */
  dir: string;
  /** Salt's configuration folder. */
  config: string;
  /** Where the master publishes, and where it takes answers. */
  ports: readonly [number, number];
};

/** The configuration, the secret files, the states and the pillars of one master and its minion. */
export async function writeConfig({ options, dir, config, ports }: SaltConfig): Promise<void> {
  const [publish, answers] = ports;
  const secretFile = (name: string) => path.join(dir, 'secrets', name);
  for (const [name, text] of Object.entries(options.secrets))
    await writePrivate(secretFile(name), `${text}\n`);
  const common = {
    user: 'root',
    enable_gpu_grains: false,
    enable_fqdns_grains: false,
    log_level_logfile: 'info',
    ipc_mode: 'ipc',
  };
  await writeJson(path.join(config, 'master'), {
    ...common,
    ...folders(dir, 'master'),
    interface: '127.0.0.1',
    publish_port: publish,
    ret_port: answers,
    auto_accept: true,
    worker_threads: 3,
    // As the README advises: it would write every pillar to the disk.
    minion_data_cache: false,
    file_roots: { base: [path.join(dir, 'states'), guard] },
    pillar_roots: { base: [path.join(dir, 'pillars')] },
    extension_modules: path.join(dir, 'extmods'),
    ext_pillar: [{ colonnade: options.colonnade(secretFile) }],
    ...(options.engine === undefined ? {} : { engines: [{ colonnade: options.engine }] }),
  });
  const writeMinion = (id: string, role: string, file: string) =>
    writeJson(file, {
      ...common,
      ...folders(dir, role),
      id,
      master: '127.0.0.1',
      master_port: answers,
      publish_port: publish,
      mine_enabled: false,
      // What a minion holds is to be seen here, from 3008 on too.
      pillar_mask_output: false,
      acceptance_wait_time: 1,
      random_reauth_delay: 1,
      recon_default: 200,
      recon_max: 1000,
    });
  await writeMinion(options.minion, 'minion', path.join(config, 'minion'));
  if (options.otherMinion !== undefined) {
    await writeMinion(options.otherMinion, 'other', path.join(config, 'other', 'minion'));
  }
  for (const [kind, files] of Object.entries({ states: options.states, pillars: options.pillars ?? {} })) {
    await mkdir(path.join(dir, kind), { recursive: true });
    for (const [name, text] of Object.entries(files)) {
      const file = path.join(dir, kind, name);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, text);
    }
  }
}

/** Short paths: Unix sockets lie below them. */
function folders(dir: string, role: string) {
  return {
    // Salt puts it before every path that does not begin with it.
    root_dir: dir,
    pki_dir: path.join(dir, role, 'pki'),
    cachedir: path.join(dir, role, 'cache'),
    sock_dir: path.join(dir, role, 's'),
    pidfile: path.join(dir, role, 'pid'),
    log_file: path.join(dir, role, 'log'),
  };
}

/** Every JSON text is YAML. */
async function writeJson(file: string, value: unknown): Promise<void> {
  await writePrivate(file, JSON.stringify(value, undefined, 2));
}

async function writePrivate(file: string, text: string): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text, { mode: 0o600 });
}
