import { fromPlain, type Value } from '@colonnade/value';

/**
 * The sample estate: two masters, five minions, a collection tree three deep, plain pillars and secrets in every kind
 * of scope, some of them overriding others. What it says is made up; so are the secrets.
 */
export type SampleMaster = { id: string; envs: readonly string[] };
export type SampleCollection = { id: string; name: string; parentId?: string };
export type SampleMinion = { master: string; id: string; collections: readonly string[] };
export type SamplePillar = {
  target:
    | { tgt_type: 'root' }
    | { tgt_type: 'collection'; collection_id: string }
    | { tgt_type: 'minion'; master: string; minion_id: string };
  name: string;
  value: Value;
  is_secret?: true;
};

export const sampleMasters: readonly SampleMaster[] = [
  { id: 'salt-east', envs: ['staging'] },
  { id: 'salt-west', envs: [] },
];

export const sampleCollections: readonly SampleCollection[] = [
  { id: 'all-linux', name: 'Every Linux host' },
  { id: 'web', name: 'Web servers', parentId: 'all-linux' },
  { id: 'web-shop', name: 'Servers of the shop', parentId: 'web' },
  { id: 'db', name: 'Databases', parentId: 'all-linux' },
];

export const sampleMinions: readonly SampleMinion[] = [
  { master: 'salt-east', id: 'shop-1.example', collections: ['web-shop'] },
  { master: 'salt-east', id: 'shop-2.example', collections: ['web-shop'] },
  { master: 'salt-east', id: 'db-1.example', collections: ['db'] },
  { master: 'salt-west', id: 'web-9.example', collections: ['web'] },
  { master: 'salt-west', id: 'bare.example', collections: [] },
];

const root = { tgt_type: 'root' } as const;
const collection = (collection_id: string) => ({ tgt_type: 'collection', collection_id }) as const;
const minion = (master: string, minion_id: string) => ({ tgt_type: 'minion', master, minion_id }) as const;

export const samplePillars: readonly SamplePillar[] = [
  {
    target: root,
    name: 'ntp',
    value: fromPlain({ servers: ['ntp1.example', 'ntp2.example'], step_limit_s: 0.5 }),
  },
  { target: root, name: 'motd', value: 'Managed by Salt' },
  { target: root, name: 'monitoring_token', value: 'sample-monitoring-token', is_secret: true },
  { target: collection('all-linux'), name: 'motd', value: 'Managed by Salt. Linux team: дежурный 24/7' },
  { target: collection('all-linux'), name: 'sshd', value: fromPlain({ port: 22, permit_root_login: false }) },
  { target: collection('web'), name: 'nginx', value: fromPlain({ workers: 4, keepalive_s: 65, ratio: 1.5 }) },
  { target: collection('web'), name: 'tls_key_passphrase', value: 'sample-web-passphrase', is_secret: true },
  {
    target: collection('web-shop'),
    name: 'nginx',
    value: fromPlain({ workers: 16, keepalive_s: 30, ratio: 1.5 }),
  },
  {
    target: collection('web-shop'),
    name: 'shop_db',
    value: fromPlain({ user: 'shop', password: 'sample-shop-db-password', port: 5432 }),
    is_secret: true,
  },
  { target: collection('db'), name: 'backup', value: fromPlain({ keep_days: 30, at: '03:00' }) },
  {
    target: minion('salt-east', 'shop-1.example'),
    name: 'sshd',
    value: fromPlain({ port: 2222, permit_root_login: false }),
  },
  {
    target: minion('salt-east', 'shop-1.example'),
    name: 'monitoring_token',
    value: 'sample-shop-1-monitoring-token',
    is_secret: true,
  },
  { target: minion('salt-west', 'web-9.example'), name: 'motd', value: 'Replaced soon' },
];
