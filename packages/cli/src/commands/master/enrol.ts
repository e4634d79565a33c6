import { defineEnrol } from '../../shared/enrol.ts';

export const masterEnrol = defineEnrol({
  path: 'master enrol',
  summary: 'make a one-time token with which a host of a master gets an identity',
  details:
    "Bring it to the host; the engine colonnade_identity uses it up. Delete its id among the master's tokens to take the identity back.",
  id: 'logical master',
  resource: 'masters',
  example: 'salt-east',
});
