import { type CloudEvent, ColonnadeError, eventMsgId, subjectOfEvent } from '@colonnade/contracts';
import { canonicalText, type Value } from '@colonnade/value';
import { z } from 'zod';
import type { HookEventName } from './run/hook-events.ts';

/** The hooks an event asks for. */
export type PlannedRun = {
  id: string;
  event: HookEventName;
  subject: string;
  /** The minion it is about: some parameters are for the runner to fill. */
  minion?: { master: string; id: string };
  parameters: Readonly<Record<string, string>>;
  /** An inventory that could not be used: its hooks get a file with it. */
  inventory?: string;
};

const zText = z.string().catch('');
const zTexts = z.array(z.string()).catch([]);

/** What events say of a minion; what no inventory has told is absent. */
const zMinionData = z.object({
  master: z.string(),
  id: z.string(),
  state: z.enum(['pending', 'accepted']).optional(),
  facts: z
    .object({
      hostname: zText,
      os_name: zText,
      os_version: zText,
      os_service_pack: zText,
      os_string: zText,
      ips: zTexts,
      agent_type: zText,
      roles: zTexts,
    })
    .optional(),
});
type MinionData = z.infer<typeof zMinionData>;

const zFailedInventory = z.object({ inventory: z.string(), reason: zText });

/**
 * Which hooks an event of the stream is for, with their parameters; undefined: none.
 * @throws ZodError when the data of a minion's event is none
 */
export function planRun(event: CloudEvent): PlannedRun | undefined {
  const type = /^colonnade\.(.+)\.v\d+$/u.exec(event.type)?.[1] ?? '';
  const id = `event:${eventMsgId(event)}`;
  const { subject, data } = event;
  if (type === 'minion.inventory-failed') {
    const { inventory, reason } = zFailedInventory.parse(data);
    const parameters = { COLONNADE_ERROR_MESSAGE: reason };
    return { id, event: 'node-inventory-received-failed', subject, parameters, inventory };
  }
  const ofMinion = type === '' ? undefined : minionHooks(type, data);
  if (ofMinion !== undefined) {
    const { name, minion, parameters } = ofMinion;
    return { id, event: name, subject, minion: { master: minion.master, id: minion.id }, parameters };
  }
  const own = OWN_HOOKS[type.split('.', 1)[0] ?? ''];
  return own === undefined ? undefined : { id, event: own, subject, parameters: ownParameters(event) };
}

/**
 * Rights on the bus are rights on subjects: who may tell of keys alone must not delete a minion with it.
 * @throws ColonnadeError `bad_request` for an event that says it is another than its subject says
 */
export function checkSubject(event: CloudEvent, subject: string): void {
  if (subjectOfEvent(event) === subject) return;
  throw new ColonnadeError('bad_request', `an event on ${subject} says that it is of another type`);
}

/** The hooks an event of a service outside asks for: whatever its type says, they are those of all such events. */
export function planExternalRun(event: CloudEvent): PlannedRun {
  const { COLONNADE_EVENT_CLOCK: _, ...parameters } = ownParameters(event);
  return {
    ...{ id: `event:${eventMsgId(event)}`, event: 'external-event' },
    // Of two events about the same thing of a service the order is kept; of what it does not say, all of its own.
    subject: `${event.source}/${event.subject}`,
    parameters: { ...parameters, COLONNADE_EVENT_SOURCE: event.source },
  };
}

/** Colonnade's own events, by the first word of their type. */
const OWN_HOOKS: Readonly<Record<string, HookEventName>> = {
  pillar: 'pillar-changed',
  // Of an import: its pillars have no events of their own.
  estate: 'pillar-changed',
  key: 'key-changed',
  tls: 'tls-rotated',
  audit: 'audit-alert',
};

type MinionHooks = { name: HookEventName; minion: MinionData; parameters: Record<string, string> };

function minionHooks(type: string, data: Value): MinionHooks | undefined {
  const hooksFor = (
    name: HookEventName,
    minion: MinionData,
    more: Record<string, string> = {},
  ): MinionHooks => ({
    name,
    minion,
    parameters: { ...nodeParameters(minion), ...more },
  });
  // To register a minion is to accept it.
  if (type === 'minion.registered') return hooksFor('node-post-acceptance', zMinionData.parse(data));
  if (type === 'minion.deleted') {
    const minion = zMinionData.parse(data);
    return hooksFor('node-post-deletion', minion, { RUDDER_NODE_ROLES: minion.facts?.roles.join(',') ?? '' });
  }
  if (type !== 'minion.inventory-received') return undefined;
  const minion = zMinionData.parse(data);
  const name =
    minion.state === 'pending' ? 'node-inventory-received-pending' : 'node-inventory-received-accepted';
  return hooksFor(name, minion, systemParameters(minion));
}

function nodeParameters({ master, id, facts }: MinionData): Record<string, string> {
  return {
    RUDDER_NODE_ID: id,
    RUDDER_NODE_HOSTNAME: facts?.hostname || id,
    RUDDER_NODE_POLICY_SERVER_ID: master,
    RUDDER_AGENT_TYPE: facts?.agent_type || 'salt',
  };
}

function systemParameters({ facts }: MinionData): Record<string, string> {
  return {
    RUDDER_NODE_OS_NAME: facts?.os_name ?? '',
    RUDDER_NODE_OS_VERSION: facts?.os_version ?? '',
    RUDDER_NODE_OS_SP: facts?.os_service_pack ?? '',
    RUDDER_NODE_OS_STRING: facts?.os_string ?? '',
    RUDDER_NODE_IPS: facts?.ips.join(' ') ?? '',
  };
}

function ownParameters(event: CloudEvent) {
  return {
    COLONNADE_EVENT_ID: event.id,
    COLONNADE_EVENT_TYPE: event.type,
    COLONNADE_EVENT_SUBJECT: event.subject,
    COLONNADE_EVENT_TIME: event.time,
    COLONNADE_EVENT_CLOCK: event.clock,
    COLONNADE_EVENT_DATA: canonicalText(event.data),
  };
}
