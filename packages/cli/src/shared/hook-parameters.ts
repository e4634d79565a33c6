import type { ApiClient } from '@colonnade/api-client';
import { ColonnadeError } from '@colonnade/contracts';
import type { ValueObject } from '@colonnade/value';
import { minionPath } from '../commands/minion/path.ts';
import { usageError } from '../exit-codes.ts';
import type { OptionSpec } from '../table/command.ts';
import { asList, asObject } from './view.ts';

export const HOOK_ARGUMENT = { event: { help: 'name of the folder, such as node-post-acceptance' } } as const;

export const PARAMETER_OPTIONS = {
  set: { value: 'NAME=VALUE', repeat: true, help: 'a variable of the event; several times' },
  master: { value: 'ID', help: 'with --minion: fill in what is known of this minion' },
  minion: { value: 'ID', help: 'with --master: fill in what is known of this minion' },
} satisfies Record<string, OptionSpec>;

/**
 * The event's variables: those of the command line over those of the minion, and now for when a generation or an event was. What
 * the event does not know is not sent, unless it was set.
 * @throws ColonnadeError `misconfigured`, `not_found`
 */
export async function hookParameters(
  api: ApiClient,
  event: string,
  options: { set: readonly string[]; master: string | undefined; minion: string | undefined },
): Promise<Record<string, string>> {
  const given = Object.fromEntries(options.set.map(parseSetting));
  const { master, minion } = options;
  if ((master === undefined) !== (minion === undefined))
    throw usageError('--minion and --master go together');
  const names = await namesOf(api, event);
  const now = new Date().toISOString();
  const known: Record<string, string> = {
    RUDDER_GENERATION_DATETIME: now,
    RUDDER_END_GENERATION_DATETIME: now,
    COLONNADE_EVENT_ID: 'by-hand',
    COLONNADE_EVENT_TIME: now,
    COLONNADE_EVENT_CLOCK: '',
    ...(master === undefined || minion === undefined ? {} : await minionParameters(api, master, minion)),
  };
  const fitting = Object.entries(known).filter(([name]) => names.has(name));
  return { ...Object.fromEntries(fitting), ...given };
}

function parseSetting(text: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw usageError(`--set: "${text}" is not NAME=VALUE`);
  return [text.slice(0, at), text.slice(at + 1)];
}

/** One event of `GET /hooks`. @throws ColonnadeError `not_found` */
export async function hookFolder(api: ApiClient, event: string): Promise<ValueObject> {
  const { value } = await api.call('GET', '/hooks?limit=500');
  const found = asList(asObject(value).items).map(asObject);
  const one = found.find((folder) => folder.event === event);
  if (one !== undefined) return one;
  const names = found.map((folder) => String(folder.event)).join(', ');
  throw new ColonnadeError('not_found', `there are no hooks of the event ${event}; there are: ${names}`);
}

async function namesOf(api: ApiClient, event: string): Promise<ReadonlySet<string>> {
  const { parameters } = await hookFolder(api, event);
  return new Set(asList(parameters).map((one) => String(asObject(one).name)));
}

/** As hook-runner itself would tell a hook of it. */
async function minionParameters(api: ApiClient, master: string, id: string): Promise<Record<string, string>> {
  const path = minionPath({ master, id });
  await api.call('GET', path);
  const answer = await api.send('GET', `${path}/inventory`);
  const facts = answer.status === 200 ? asObject(asObject(answer.value).facts) : {};
  const os = asObject(facts.os);
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  const list = (value: ValueObject[string] | undefined, by: string) => asList(value).map(text).join(by);
  return {
    RUDDER_NODE_ID: id,
    RUDDER_NODE_HOSTNAME: text(facts.hostname) || id,
    RUDDER_NODE_POLICY_SERVER_ID: master,
    RUDDER_AGENT_TYPE: text(facts.agent_type) || 'salt',
    RUDDER_NODE_OS_NAME: text(os.name),
    RUDDER_NODE_OS_VERSION: text(os.version),
    RUDDER_NODE_OS_SP: text(os.service_pack),
    RUDDER_NODE_OS_STRING: text(os.string),
    RUDDER_NODE_IPS: list(facts.ips, ' '),
    RUDDER_NODE_ROLES: list(facts.roles, ','),
  };
}
