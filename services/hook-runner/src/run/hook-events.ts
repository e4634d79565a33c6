import type { Timeouts } from './timeouts.ts';

/** An event that has hooks: the name of its folder, and what its hooks are told. */
export type HookEvent = {
  /** What has happened, or is about to. */
  when: string;
  /** The parameters its hooks get, each a variable of the environment. */
  parameters: Readonly<Record<string, string>>;
  /** How long its hooks may take, for those that state nothing. */
  timeouts: Timeouts;
  /** Whether its hooks can stop what is about to happen. */
  veto: boolean;
};

/** Seed 002: hooks that run once for each node of a generation must be quick. */
const PER_NODE: Timeouts = { warnMs: 2000, killMs: 20_000 };
const OTHER: Timeouts = { warnMs: 30_000, killMs: 300_000 };

const NODE = {
  RUDDER_NODE_ID: 'id of the minion',
  RUDDER_NODE_HOSTNAME: 'its fully qualified host name; its id where no inventory has told',
  RUDDER_NODE_POLICY_SERVER_ID: 'id of its master',
  RUDDER_AGENT_TYPE: 'kind of its agent: `salt` unless its inventory says otherwise',
};

const SYSTEM = {
  RUDDER_NODE_OS_NAME: 'name of its operating system; empty when unknown, as the three that follow',
  RUDDER_NODE_OS_VERSION: 'version of that',
  RUDDER_NODE_OS_SP: 'service pack of that',
  RUDDER_NODE_OS_STRING: 'long name of that',
  RUDDER_NODE_IPS: 'its addresses, separated by blanks',
};

const FOLDERS = {
  RUDDER_POLICIES_DIRECTORY_CURRENT: 'folder of its policies',
  RUDDER_POLICIES_DIRECTORY_NEW: 'folder of its next policies, during a generation',
  RUDDER_POLICIES_DIRECTORY_ARCHIVE: 'folder of its policies before those',
  RUDDER_NODE_ROLES: 'its roles, separated by commas',
};

const GENERATION = {
  RUDDER_GENERATION_DATETIME: 'when the generation began, ISO 8601 in UTC with milliseconds; its name too',
};

const GENERATION_END = {
  RUDDER_END_GENERATION_DATETIME: 'when it ended, without the time of these hooks',
};

/** Beside what seed 002 gives: its ids do not say whose minion it is, and a failed generation has updated some too. */
const UPDATED = {
  COLONNADE_NODES_PATH:
    'file with a line `master/minion` for each minion whose policies changed; `#` begins a comment',
  COLONNADE_REFRESH_DIR: 'folder for such files; their masters are told to refresh these minions',
};

const OWN = {
  COLONNADE_EVENT_ID: 'id of the event: the same each time it is delivered',
  COLONNADE_EVENT_TYPE: 'its type, such as `colonnade.pillar.updated.v1`',
  COLONNADE_EVENT_SUBJECT: 'what it is about, such as `/pillars/<pid>`',
  COLONNADE_EVENT_TIME: 'when it happened, ISO 8601 in UTC with milliseconds',
  COLONNADE_EVENT_CLOCK: 'clock of the estate; 0 for what is not of the estate',
  COLONNADE_EVENT_DATA: 'its data as JSON; never the value of a pillar',
};

function event(when: string, parameters: HookEvent['parameters'], more: Partial<HookEvent> = {}): HookEvent {
  return { when, parameters, timeouts: OTHER, veto: false, ...more };
}

const OUTSIDE = {
  COLONNADE_EVENT_ID: 'id of the event, as its service gave it: the same each time it is delivered',
  COLONNADE_EVENT_TYPE: 'its type, such as `order.placed`',
  COLONNADE_EVENT_SOURCE: 'whose it is, such as `urn:colonnade:service:shop`',
  COLONNADE_EVENT_SUBJECT: 'what it is about; empty when its service did not say',
  COLONNADE_EVENT_TIME: 'when it happened, as its service says',
  COLONNADE_EVENT_DATA: 'its data as JSON: whatever its service sent',
};

/** Every event that has hooks, under the name of its folder: those of seed 002 as Rudder names them, then our own. */
export const HOOK_EVENTS = {
  'node-inventory-received-accepted': event(
    'after the inventory of an accepted minion was received and its facts were updated',
    { ...NODE, ...SYSTEM },
  ),
  'node-inventory-received-failed': event('after an inventory was received that could not be used', {
    RUDDER_INVENTORY_PATH:
      'file with that inventory, as text; empty when it was too large or of a foreign media type',
    COLONNADE_ERROR_MESSAGE: 'why it could not be used, in one line',
  }),
  'node-inventory-received-pending': event(
    'after the inventory of a minion was received that is not accepted, new or known',
    { ...NODE, ...SYSTEM },
  ),
  'node-post-acceptance': event('after a minion was accepted', NODE),
  'node-pre-deletion': event(
    'before a minion is deleted; an error keeps it',
    { ...NODE, ...FOLDERS },
    { veto: true },
  ),
  'node-post-deletion': event('after a minion was deleted', { ...NODE, ...FOLDERS }),
  'policy-generation-pre-start': event('before a generation looks at the estate; an error stops it', {
    ...GENERATION,
  }),
  'policy-generation-started': event('when a generation begins; an error stops it', { ...GENERATION }),
  'policy-generation-node-ready': event(
    'after the policies of a minion were written, before they replace the old ones; an error keeps the old ones',
    {
      ...GENERATION,
      ...NODE,
      RUDDER_POLICIES_DIRECTORY_NEW: 'folder of the new policies',
    },
    { timeouts: PER_NODE, veto: true },
  ),
  'policy-generation-node-finished': event(
    'after the new policies of a minion have replaced the old ones',
    {
      ...GENERATION,
      ...NODE,
      RUDDER_POLICIES_DIRECTORY_CURRENT: 'folder of the new policies',
    },
    { timeouts: PER_NODE },
  ),
  'policy-generation-finished': event('after a generation has ended well', {
    ...GENERATION,
    ...GENERATION_END,
    RUDDER_NODE_IDS_PATH: 'file that sets the bash array RUDDER_NODE_IDS: the minions whose policies changed',
    RUDDER_NUMBER_NODES_UPDATED: 'how many those are',
    RUDDER_ROOT_POLICY_SERVER_UPDATED: '0 if the root policy server is among them, else 1',
    ...UPDATED,
  }),
  'policy-generation-failed': event('after a generation has failed', {
    ...GENERATION,
    ...GENERATION_END,
    RUDDER_ERROR_MESSAGE_PATH: 'file with the whole message',
    ...UPDATED,
  }),
  'pillar-changed': event('after a pillar was created, changed or deleted, or an import changed many', OWN),
  'key-changed': event(
    'after a version of a key was made, became the active one, was retired, barred, destroyed, taken back or erased',
    OWN,
  ),
  'tls-rotated': event('after TLS material was rotated, or its rotation failed', OWN),
  'external-event': event('after a service outside published an event', OUTSIDE),
  'audit-alert': event('after the audit raised an alert', OWN),
} satisfies Readonly<Record<string, HookEvent>>;

export type HookEventName = keyof typeof HOOK_EVENTS;
export const HOOK_EVENT_NAMES = Object.keys(HOOK_EVENTS) as HookEventName[];
