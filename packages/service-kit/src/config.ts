import { ColonnadeError } from '@colonnade/contracts';
import { readPrivateText } from './private-file.ts';
import { createSecret, type Secret } from './secret.ts';

/** Reads the text of one environment variable. @throws Error with what is wrong, without the text itself */
export type Parse<T> = (text: string) => T;

export type Setting<T> = {
  env: string;
  parse: Parse<T>;
  help: string;
  /** Text as it would stand in the environment; undefined: the setting is required. */
  fallback: string | undefined;
  optional: boolean;
  secret: boolean;
};

export type Settings = Readonly<Record<string, Setting<unknown>>>;
export type ConfigOf<S extends Settings> = {
  readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never;
};

type Env = Readonly<Record<string, string | undefined>>;

/** A setting that must be given, or falls back to a default. */
export function setting<T>(
  env: string,
  parse: Parse<T>,
  options: { help: string; default?: string },
): Setting<T> {
  return { env, parse, help: options.help, fallback: options.default, optional: false, secret: false };
}

/** A setting that may be absent. */
export function optionalSetting<T>(
  env: string,
  parse: Parse<T>,
  options: { help: string },
): Setting<T | undefined> {
  return { env, parse, help: options.help, fallback: undefined, optional: true, secret: false };
}

/** A secret from the file named by `<env>_FILE` (mode 0600), or from `<env>` itself. */
export function secretSetting(env: string, options: { help: string }): Setting<Secret> {
  return { env, parse: createSecret, help: options.help, fallback: undefined, optional: false, secret: true };
}

export function optionalSecretSetting(env: string, options: { help: string }): Setting<Secret | undefined> {
  return { ...secretSetting(env, options), optional: true };
}

/**
 * Reads all settings from an environment; an empty variable counts as absent.
 * @throws ColonnadeError `misconfigured` that names every fault at once
 */
export function readConfig<S extends Settings>(settings: S, env: Env): ConfigOf<S> {
  const faults: string[] = [];
  const config: Record<string, unknown> = {};
  for (const [key, one] of Object.entries(settings)) {
    try {
      config[key] = readSetting(one, env);
    } catch (thrown) {
      faults.push(`${one.env}: ${thrown instanceof Error ? thrown.message : 'not readable'} (${one.help})`);
    }
  }
  if (faults.length > 0) {
    throw new ColonnadeError(
      'misconfigured',
      `the configuration has ${faults.length} fault(s):\n  ${faults.join('\n  ')}`,
    );
  }
  return config as ConfigOf<S>;
}

function readSetting(one: Setting<unknown>, env: Env): unknown {
  const text = (one.secret ? readSecretText(one.env, env) : env[one.env]) || one.fallback;
  if (text !== undefined && text !== '') return one.parse(text);
  if (one.optional) return undefined;
  throw new Error(one.secret ? `missing; set ${one.env}_FILE or ${one.env}` : 'missing');
}

function readSecretText(name: string, env: Env): string | undefined {
  const setting = `${name}_FILE`;
  const path = env[setting];
  return path ? readPrivateText(path, setting) : env[name];
}

/** The rows of a README's environment table: name, default, meaning. */
export function settingsTable(settings: Settings): readonly string[] {
  return Object.values(settings).map((one) => {
    const name = one.secret ? `\`${one.env}_FILE\` or \`${one.env}\`` : `\`${one.env}\``;
    const fallback = one.fallback !== undefined ? `\`${one.fallback}\`` : one.optional ? 'unset' : 'required';
    return `| ${name} | ${fallback} | ${one.help} |`;
  });
}
