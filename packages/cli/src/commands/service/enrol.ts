import { defineEnrol } from '../../shared/enrol.ts';

export const serviceEnrol = defineEnrol({
  path: 'service enrol',
  summary: 'make a one-time token with which a host of a service gets an identity',
  details: 'The host sends it to POST /identity/enrol. "service unenrol" takes the identity back.',
  id: 'service',
  resource: 'services',
  example: 'shop',
});
