import { realpathSync } from 'node:fs';
import path from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { createApiClient } from '@colonnade/api-client';
import { ColonnadeError } from '@colonnade/contracts';
import { usageError } from '../exit-codes.ts';
import { type Profile, readPrivate, readProfiles, writeProfiles } from '../profile/config-file.ts';
import { checkUrl, variable } from '../profile/settings.ts';
import { type Session, trustAuthority } from '../session.ts';
import { defineCommand } from '../table/command.ts';
import { ask, askHidden, canAsk } from '../terminal/prompt.ts';

export const login = defineCommand({
  path: 'login',
  summary: 'keep an address and a token in a profile',
  details:
    'The token is asked for and not shown, or read from standard input or a file; it is tried, then kept in a file of mode 0600. An address that is kept already need not be given again.',
  options: {
    'token-file': { value: 'FILE', help: 'file (0600) that holds the token' },
    'ca-file': { value: 'FILE', help: 'CA of pillar-api, PEM, where the system does not know it' },
    'nats-url': { value: 'URL', help: 'NATS servers, for "status" and "audit verify"' },
    'nats-nkey-file': {
      value: 'FILE',
      help: 'file (0600) with the nkey seed of the NATS user "operator"',
    },
    'nats-ca-file': { value: 'FILE', help: 'CA of the NATS servers' },
  },
  examples: [
    ['login --url https://pillars.example:8080', 'asks for the token'],
    ['colonnade login --url https://pillars.example:8080 < token', 'the token from a file'],
    ['login --profile test --url http://127.0.0.1:8080 --token-file token', 'a second profile'],
  ],
  async run(session, { options }) {
    const { env, out } = session;
    const profiles = readProfiles(env);
    const name = session.chosen.profile ?? variable(env, 'COLONNADE_PROFILE') ?? profiles.current;
    if (!/^[A-Za-z0-9._-]{1,64}$/u.test(name))
      throw usageError(`a profile is named with A–Z a–z 0–9 . _ -, not "${name}"`);
    const before = Object.hasOwn(profiles.profiles, name) ? profiles.profiles[name] : undefined;
    const url = await addressOf(session, before);
    if (url.protocol === 'http:' && !/^(?:localhost|127\..*|\[::1\])$/u.test(url.hostname)) {
      out.note(`warning: ${url.origin} is not encrypted; the token and every secret can be read on the way`);
    }
    const absolute = (file: string | undefined) => (file === undefined ? undefined : path.resolve(file));
    const caFile = absolute(options['ca-file']) ?? before?.ca_file;
    trustAuthority(caFile);
    const token = await tokenFrom(options['token-file']);
    await tryToken(session, url.href, token);
    const profile: Profile = {
      url: url.href.replace(/\/$/u, ''),
      token,
      ...given('ca_file', caFile),
      ...given('nats_url', options['nats-url'] ?? before?.nats_url),
      ...given('nats_nkey_file', absolute(options['nats-nkey-file']) ?? before?.nats_nkey_file),
      ...given('nats_ca_file', absolute(options['nats-ca-file']) ?? before?.nats_ca_file),
    };
    const all = { ...profiles.profiles, [name]: profile };
    const file = await writeProfiles(env, { version: 1, current: name, profiles: all });
    if (session.json) return await out.json({ profile: name, url: profile.url, file });
    await out.fields([
      ['profile', name],
      ['url', profile.url],
      ['kept in', realpathSync(file)],
    ]);
  },
});

function given<K extends keyof Profile>(field: K, value: string | undefined): Partial<Profile> {
  return value === undefined ? {} : { [field]: value };
}

async function addressOf({ chosen, env }: Session, before: Profile | undefined): Promise<URL> {
  const known = chosen.url ?? variable(env, 'COLONNADE_URL') ?? before?.url;
  if (known !== undefined) return checkUrl(known);
  if (!canAsk()) throw usageError('there is no address: give --url');
  return checkUrl((await ask('Address of pillar-api: ')).trim());
}

async function tokenFrom(file: string | undefined): Promise<string> {
  const token =
    file !== undefined
      ? readPrivate(file, 'the token file')
      : canAsk()
        ? await askHidden('Token: ')
        : await readText(process.stdin);
  const trimmed = token?.trim() ?? '';
  if (trimmed === '')
    throw usageError('there is no token: type it, or give it on standard input or with --token-file');
  if (/[^\x21-\x7e]/u.test(trimmed))
    throw usageError('what was given is no token: it holds blanks or other characters');
  return trimmed;
}

/** A token that is wrong is better known now. One that may not list collections is still a token. */
async function tryToken({ signal }: Session, url: string, token: string): Promise<void> {
  const api = createApiClient(url, token, { signal, timeoutMs: 30_000 });
  await api.call('GET', '/collections?limit=1').catch((thrown: unknown) => {
    if (!(thrown instanceof ColonnadeError) || thrown.code !== 'forbidden') throw thrown;
  });
}
