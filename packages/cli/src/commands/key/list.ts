import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { column } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const COLUMNS = [
  column('KEY', 'name'),
  column('VERSION', 'version'),
  column('KID', 'kid'),
  column('FOR', 'purpose'),
  column('STATE', 'state'),
  column('OPENS', 'opens'),
  column('VALUES', 'values', 'right'),
  column('ENCRYPTIONS', 'encryptions', 'right'),
  column('ACTIVE FROM', 'active_from'),
  column('ERASED AFTER', 'erased_after'),
];

export const keyList = defineCommand({
  path: 'key list',
  summary: 'list the keys of the KMS and their versions',
  details:
    '`pillars` seals what is secret: the active version seals, retired ones only open. `identity` signs identities of workloads: the active version signs, retired ones only verify. VALUES counts what is stored under each, with all its history; ENCRYPTIONS is at most how often it was used, of 2^32. Empty where crypto-kms has no keyring.',
  options: LIMIT_OPTION,
  examples: [['key list', 'all versions']],
  run: (session, { options }) => showList(session, '/keys', options, COLUMNS),
});
