/** Texts that policies and requests share, so that they meet often. */
export const words = {
  users: [
    'alice',
    'bob',
    'system:kube-proxy',
    'yes',
    '123',
    'master:m1',
    '',
    'Ünï',
    'a"b\\c',
    'line\nbreak\u2028',
  ],
  groups: ['system:authenticated', 'admin', 'viewer', 'secret-reader', 'on', '1.5'],
  verbs: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'reveal', '*'],
  apiGroups: ['', 'colonnade', 'apps', 'rbac.authorization.k8s.io', '*'],
  resources: ['pods', 'pillars', 'masters', 'minions', 'secrets', '*'],
  subresources: ['', '', 'status', 'log', 'reveal', 'versions', '*'],
  namespaces: ['', 'root', 'minion', 'kube-system', 'null', 'c-1'],
  names: ['', 'x', 'controller-leader', 'ssh_key', '~', '0x1f'],
  paths: ['/', '/api', '/api/v1', '/apis', '/version', '/healthz', '/healthz/etcd', '/metrics', '/*', ''],
} as const;

/** What a rule may ask for beyond the words themselves. */
export const patterns = {
  resources: [
    ...words.resources,
    'pods/log',
    'pods/*',
    'pillars/reveal',
    'pillars/*',
    '*/status',
    '*/*',
    '*/reveal',
    '/',
    'pods/',
  ],
  urls: ['/api*', '/version', '/healthz*', '/*', '*', '/', '/metrics', '/api/v1'],
  badUrls: ['api', '', '/a*b', '/a**', '*/x', 'x*'],
  badGroups: ['apps/v1', 'Apps', 'a_b', '-a', 'a..b', 'a'.repeat(254), 'ü'],
  levels: ['None', 'Metadata', 'Request', 'RequestResponse'],
  badLevels: ['', 'metadata', 'All', 'none'],
  stages: ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'],
  badStages: ['', 'Received', 'panic', 'RequestReceived '],
} as const;
