import { IF_MATCH_OPTION, ifMatch } from '../../shared/conditions.ts';
import { readDocument } from '../../shared/named-values.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const collectionRuleSet = defineCommand({
  path: 'collection rule set',
  summary: 'make those minions members of a collection whose inventory satisfies a rule',
  details:
    'The rule is YAML or JSON, such as {field: os.name, op: eq, value: Debian}; docs/pillars.md has all of it. Done when every minion is settled. Whoever writes inventories then decides who is a member.',
  args: { id: { help: 'collection' } },
  options: {
    file: { value: 'FILE', required: true, help: 'the rule; "-": standard input' },
    ...IF_MATCH_OPTION,
  },
  examples: [['collection rule set debian --file rule.yaml', 'from a file']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = `/collections/${encodeURIComponent(args.id)}`;
    const rule = await readDocument(options.file);
    const answer = await api.call('PUT', `${path}/rule`, rule, await ifMatch(api, path, options['if-match']));
    await show(session, answer.value, allFields);
  },
});
