import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { column } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const COLUMNS = [
  column('KEY', 'name'),
  column('VERSION', 'version'),
  column('KID', 'kid'),
  column('STATE', 'state'),
  column('OPENS', 'opens'),
  column('VALUES', 'values', 'right'),
  column('ENCRYPTIONS', 'encryptions', 'right'),
  column('SEALS FROM', 'active_from'),
  column('ERASED AFTER', 'erased_after'),
];

export const keyList = defineCommand({
  path: 'key list',
  summary: 'list the keys pillars are sealed with, and their versions',
  details:
    'The active version seals, retired ones only open. VALUES counts what is stored under each, with all its history; ENCRYPTIONS is at most how often it was used, of 2^32. Empty where crypto-kms has no keyring.',
  options: LIMIT_OPTION,
  examples: [['key list', 'all versions']],
  run: (session, { options }) => showList(session, '/keys', options, COLUMNS),
});
