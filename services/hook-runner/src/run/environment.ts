import { ColonnadeError } from '@colonnade/contracts';

/** What hooks find when the runner itself has none. */
const FALLBACKS: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/',
  LANG: 'C.UTF-8',
};

/** Linux takes 128 KiB for one variable with its name. */
const MAX_VARIABLE_BYTES = 128 * 1024 - 1;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/u;

export function isVariableName(name: string): boolean {
  return NAME.test(name);
}

/**
 * The whole environment of a hook: PATH, HOME, LANG and the allowed variables of the runner's own, then the parameters.
 * Nothing else of the runner's: its secrets are there too.
 * @throws ColonnadeError `bad_request` naming a parameter that no environment can carry
 */
export function buildEnvironment(
  parameters: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string | undefined>>,
  allowed: readonly string[],
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, fallback] of Object.entries(FALLBACKS)) env[name] = own[name] || fallback;
  for (const name of allowed) {
    const value = own[name];
    if (value !== undefined) env[name] = value;
  }
  for (const [name, value] of Object.entries(parameters)) {
    checkParameter(name, value);
    env[name] = value;
  }
  return env;
}

function checkParameter(name: string, value: string): void {
  const refuse = (why: string) => new ColonnadeError('bad_request', why, { field: name.slice(0, 64) });
  if (!isVariableName(name)) throw refuse('the name of a parameter is none of a variable');
  if (value.includes('\0')) throw refuse(`${name} holds a NUL, which no environment can carry`);
  if (Buffer.byteLength(name) + Buffer.byteLength(value) + 1 > MAX_VARIABLE_BYTES) {
    throw refuse(`${name} is longer than an environment can carry`);
  }
}
