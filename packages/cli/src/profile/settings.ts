import { usageError } from '../exit-codes.ts';
import { type Profile, readPrivate, readProfiles } from './config-file.ts';

/** Environment variables of the command; each beats the profile. */
export const ENVIRONMENT: Readonly<Record<string, string>> = {
  COLONNADE_URL: 'address of pillar-api',
  COLONNADE_TOKEN_FILE: 'file (0600) with the token; `COLONNADE_TOKEN` holds the token itself',
  COLONNADE_TOKEN: 'the token, where no file can be had; other processes of the user can see it',
  COLONNADE_CA_FILE: 'CA of pillar-api, PEM, where the system does not know it',
  COLONNADE_PROFILE: 'profile to use, as `--profile`',
  COLONNADE_NATS_URL: 'NATS servers, for `status`, `audit verify`, `audit dead` and `tls`',
  COLONNADE_NATS_NKEY_FILE: 'file (0600) with the nkey seed of the NATS user `operator`',
  COLONNADE_NATS_CA_FILE: 'CA of the NATS servers',
  COLONNADE_EXPECT: 'services beside the usual ones that `status` misses when they are away, as `--expect`',
  EDITOR: 'editor of `pillar edit`; `VISUAL` beats it',
  NO_COLOR: 'set to anything: no bold text',
};

export type Chosen = { profile: string | undefined; url: string | undefined };

export type ApiSettings = { url: string; token: string; caFile: string | undefined };
export type BusSettings = { url: string; nkeySeed: string; caFile: string | undefined };

const HOW = 'log in with "colonnade login", or set COLONNADE_URL and COLONNADE_TOKEN_FILE';

/** A variable that is empty is as good as unset. */
export function variable(env: NodeJS.ProcessEnv, name: string): string | undefined {
  return env[name] || undefined;
}

/**
 * Where the API is and with which token. A profile's token goes to the profile's address only.
 * @throws ColonnadeError `misconfigured`
 */
export function apiSettings(env: NodeJS.ProcessEnv, chosen: Chosen): ApiSettings {
  const ownToken = tokenOf(env);
  const given = chosen.url ?? variable(env, 'COLONNADE_URL');
  // Whoever gives both needs no profile, not even a readable one.
  const { name, profile } =
    given !== undefined && ownToken !== undefined && chosen.profile === undefined
      ? { name: '', profile: undefined }
      : chooseProfile(env, chosen.profile);
  const url = given ?? profile?.url;
  if (url === undefined) throw usageError(`there is no profile "${name}": ${HOW}`);
  checkUrl(url);
  const caFile = variable(env, 'COLONNADE_CA_FILE') ?? profile?.ca_file;
  if (ownToken !== undefined) return { url, token: ownToken, caFile };
  if (profile?.token === undefined) throw usageError(`there is no token for ${url}: ${HOW}`);
  if (new URL(profile.url).origin !== new URL(url).origin) {
    const why = `the token of profile "${name}" is for ${profile.url} and is not sent to ${url}`;
    throw usageError(`${why}: set COLONNADE_TOKEN_FILE, or log in there under another profile`);
  }
  return { url, token: profile.token, caFile };
}

/** @throws ColonnadeError `misconfigured` */
export function busSettings(env: NodeJS.ProcessEnv, chosen: Chosen): BusSettings {
  const { profile } = chooseProfile(env, chosen.profile);
  const url = variable(env, 'COLONNADE_NATS_URL') ?? profile?.nats_url;
  const file = variable(env, 'COLONNADE_NATS_NKEY_FILE') ?? profile?.nats_nkey_file;
  if (url === undefined || file === undefined) {
    const how = 'colonnade login --nats-url … --nats-nkey-file …';
    throw usageError(
      `this needs the bus: set COLONNADE_NATS_URL and COLONNADE_NATS_NKEY_FILE, or keep them in the profile with "${how}"; npm start writes them to .colonnade/data/cli.env`,
    );
  }
  const nkeySeed = readPrivate(file, 'the nkey file')?.trim();
  if (nkeySeed === undefined) throw usageError(`the nkey file ${file} does not exist`);
  return { url, nkeySeed, caFile: variable(env, 'COLONNADE_NATS_CA_FILE') ?? profile?.nats_ca_file };
}

/** The profile meant, and its name; without a profile when none of that name is there. */
export function chooseProfile(
  env: NodeJS.ProcessEnv,
  wanted: string | undefined,
): { name: string; profile: Profile | undefined } {
  const { current, profiles } = readProfiles(env);
  const explicit = wanted ?? variable(env, 'COLONNADE_PROFILE');
  const name = explicit ?? current;
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (explicit !== undefined && profile === undefined) {
    const known = Object.keys(profiles).sort().join(', ') || 'none';
    throw usageError(`there is no profile "${name}" (there are: ${known})`);
  }
  return { name, profile };
}

function tokenOf(env: NodeJS.ProcessEnv): string | undefined {
  const file = variable(env, 'COLONNADE_TOKEN_FILE');
  if (!file) return variable(env, 'COLONNADE_TOKEN');
  const token = readPrivate(file, 'the token file')?.trim();
  if (!token) throw usageError(`COLONNADE_TOKEN_FILE: ${file} does not exist, or is empty`);
  return token;
}

/** @throws ColonnadeError `misconfigured` */
export function checkUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/u.test(url.protocol)) {
    throw usageError(`"${text}" is no address of pillar-api: it begins with https:// or http://`);
  }
  if (url.username !== '' || url.password !== '') {
    throw usageError('an address with a user or a password in it is not taken: log in with a token');
  }
  return url;
}
