import type { ValueObject } from '@colonnade/value';
import { EXIT } from '../../exit-codes.ts';
import { HOOK_ARGUMENT, hookParameters, PARAMETER_OPTIONS } from '../../shared/hook-parameters.ts';
import { asList, asObject, show, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const hooksRun = defineCommand({
  path: 'hooks run',
  summary: 'run the hooks of an event by hand',
  details:
    'They run as for the event, on the host of hook-runner, and are in the history and the audit. Nothing happens but what they do: no minion is deleted, no generation begins. The shipped hook of policy-generation-finished and -failed has masters refresh the minions of the last generation. What takes longer than a minute goes on: see "hooks history".',
  args: HOOK_ARGUMENT,
  options: PARAMETER_OPTIONS,
  examples: [
    [
      'hooks run node-post-acceptance --master salt-east --minion shop-1.example',
      'as if it were accepted now',
    ],
    [
      'hooks run policy-generation-node-ready --master salt-east --minion shop-1.example',
      'on its policies in force',
    ],
  ],
  async run(session, { args, options }) {
    const parameters = await hookParameters(session.api(), args.event, options);
    const path = `/hooks/${encodeURIComponent(args.event)}/run`;
    const { value } = await session.api().call('POST', path, { parameters });
    await show(session, value, fields);
    return asObject(value).status === 'error' ? EXIT.differs : EXIT.ok;
  },
});

function fields({ run, status, results, not_run, fault }: ValueObject): (readonly [string, string])[] {
  return [
    ['run', textOf(run)],
    ['status', textOf(status)],
    ...asList(results).map((one) => {
      const { hook, status: became, reason, duration_ms, message } = asObject(one);
      const said = message === '' ? '' : `: ${textOf(message)}`;
      return [
        `hook ${textOf(hook)}`,
        `${textOf(became)}, ${textOf(reason)}, ${textOf(duration_ms)} ms${said}`,
      ] as const;
    }),
    ['not run', textOf(not_run)],
    ...(fault === undefined ? [] : ([['fault', textOf(fault)]] as const)),
  ];
}
