export const MASTER_OPTIONS = {
  env: {
    value: 'NAME',
    repeat: true,
    help: 'an environment its minions may ask for beside base; several times',
  },
  'on-unknown-minion': {
    value: 'WHAT',
    choices: ['register', 'refuse'],
    help: 'what becomes of a minion that asks for the first time: register or refuse',
  },
} as const;

export const LIFETIME_OPTION = {
  'token-lifetime': { value: 'SECONDS', help: 'how long its token lives (default: 365 days)' },
} as const;
