import { createHmac } from 'node:crypto';

/** A line of a known_hosts file that pins something (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). */
export type KnownHost = {
  marker: 'none' | 'revoked' | 'cert-authority';
  /** The first field: patterns separated by commas, or one hashed name. */
  hosts: string;
  /** Such as `ssh-ed25519`. */
  type: string;
  /** The key as it travels. */
  key: Buffer;
};

export type HostKeyVerdict =
  | { ok: true }
  /** `changed`: another key of this type is pinned; `new`: nothing of this type is. */
  | { ok: false; why: 'revoked' | 'changed' | 'new' };

const DEFAULT_PORT = 22;
const MARKERS: Readonly<Record<string, KnownHost['marker']>> = {
  '@revoked': 'revoked',
  '@cert-authority': 'cert-authority',
};

/** The lines that OpenSSH would use; it passes over those it cannot read, and so do we. */
export function parseKnownHosts(text: string): KnownHost[] {
  return text.split(/\r?\n/u).flatMap((line) => parseLine(line.replace(/^[ \t]+/u, '')) ?? []);
}

function parseLine(line: string): KnownHost | undefined {
  if (line === '' || line.startsWith('#')) return undefined;
  const fields = line.split(/[ \t]+/u);
  let marker: KnownHost['marker'] = 'none';
  if (line.startsWith('@')) {
    const known = MARKERS[fields.shift() as string];
    if (known === undefined) return undefined;
    marker = known;
  }
  const [hosts, type, encoded] = fields;
  if (!hosts || !type || !encoded || !/^[A-Za-z0-9+/]+=*$/u.test(encoded)) return undefined;
  const key = Buffer.from(encoded, 'base64');
  if (typeOfKey(key) !== type) return undefined;
  return { marker, hosts, type, key };
}

/** The lines in their own form again; comments are gone. */
export function writeKnownHosts(known: readonly KnownHost[]): string {
  return known
    .map(({ marker, hosts, type, key }) =>
      [...(marker === 'none' ? [] : [`@${marker}`]), hosts, type, key.toString('base64')].join(' '),
    )
    .map((line) => `${line}\n`)
    .join('');
}

/** The type a key names in its own first field. */
function typeOfKey(key: Buffer): string | undefined {
  if (key.length < 4) return undefined;
  const length = key.readUInt32BE(0);
  return length <= 64 && key.length >= 4 + length ? key.toString('latin1', 4, 4 + length) : undefined;
}

/** The name under which OpenSSH looks a host up: `host`, or `[host]:port` for a port other than 22. */
export function lookupName(host: string, port: number): string {
  const name = host.toLowerCase();
  return port === DEFAULT_PORT ? name : `[${name}]:${port}`;
}

/** Whether the first field of a line names the host, given as `lookupName` writes it. */
export function hostMatches(hosts: string, name: string): boolean {
  if (hosts.startsWith('|')) return matchesHashed(hosts, name);
  let found = false;
  for (const pattern of hosts.split(',')) {
    const negated = pattern.startsWith('!');
    if (!matchesPattern((negated ? pattern.slice(1) : pattern).toLowerCase(), name)) continue;
    // One negated pattern that matches undoes every other of the line.
    if (negated) return false;
    found = true;
  }
  return found;
}

/** `|1|salt|HMAC-SHA1(salt, name)`, as HashKnownHosts writes it. */
function matchesHashed(hosts: string, name: string): boolean {
  const [, version, salt, hash] = hosts.split('|');
  if (version !== '1' || salt === undefined || hash === undefined) return false;
  const expected = createHmac('sha1', Buffer.from(salt, 'base64')).update(name).digest('base64');
  return expected === hash;
}

/** `*` and `?`, nothing else; iterative, so that no pattern takes long. */
function matchesPattern(pattern: string, text: string): boolean {
  let [p, t, star, mark] = [0, 0, -1, 0];
  while (t < text.length) {
    if (pattern[p] === '*') {
      star = p;
      mark = t;
      p += 1;
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[t])) {
      p += 1;
      t += 1;
    } else if (star >= 0) {
      mark += 1;
      p = star + 1;
      t = mark;
    } else {
      return false;
    }
  }
  while (pattern[p] === '*') p += 1;
  return p === pattern.length;
}

/**
 * Whether a host may show this plain key. As in OpenSSH: a revoked key is refused whatever else is pinned, the key of a
 * certificate authority is never a host's own, and for a port other than 22 a line without the port counts when no
 * line with it knows the host.
 */
export function checkHostKey(
  known: readonly KnownHost[],
  { host, port, key }: { host: string; port: number; key: Buffer },
): HostKeyVerdict {
  const verdict = checkUnderName(known, lookupName(host, port), key);
  if (verdict.ok || verdict.why !== 'new' || port === DEFAULT_PORT) return verdict;
  const plain = checkUnderName(known, host.toLowerCase(), key);
  return plain.ok || plain.why === 'revoked' ? plain : verdict;
}

function checkUnderName(known: readonly KnownHost[], name: string, key: Buffer): HostKeyVerdict {
  const lines = known.filter((line) => hostMatches(line.hosts, name));
  const isThis = (line: KnownHost) => line.key.equals(key);
  if (lines.some((line) => line.marker === 'revoked' && isThis(line))) return { ok: false, why: 'revoked' };
  const pinned = lines.filter((line) => line.marker === 'none');
  if (pinned.some(isThis)) return { ok: true };
  const type = typeOfKey(key);
  return { ok: false, why: pinned.some((line) => line.type === type) ? 'changed' : 'new' };
}

/** Whether a host is only known by the authority of its host certificates. */
export function hasOnlyAuthority(known: readonly KnownHost[], host: string, port: number): boolean {
  const names = [lookupName(host, port), host.toLowerCase()];
  const lines = known.filter((line) => names.some((name) => hostMatches(line.hosts, name)));
  return (
    lines.some((line) => line.marker === 'cert-authority') && lines.every((line) => line.marker !== 'none')
  );
}

/**
 * The types of the keys that are pinned for a host: what to ask it for, so that a host with several keys shows one
 * that can be checked.
 */
export function pinnedTypes(known: readonly KnownHost[], host: string, port: number): string[] {
  const names = [lookupName(host, port), host.toLowerCase()];
  for (const name of names) {
    const lines = known.filter((line) => line.marker === 'none' && hostMatches(line.hosts, name));
    if (lines.length > 0) return [...new Set(lines.map((line) => line.type))];
  }
  return [];
}
