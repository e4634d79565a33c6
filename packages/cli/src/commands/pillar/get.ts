import { canonicalText } from '@colonnade/value';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../../shared/target.ts';
import { asObject, pillarFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { escapeLine } from '../../terminal/escape.ts';

export const pillarGet = defineCommand({
  path: 'pillar get',
  summary: 'show one pillar',
  details: 'A secret’s value is masked: see "pillar reveal".',
  args: PILLAR_ARGUMENT,
  options: { ...TARGET_OPTIONS, 'value-only': { help: 'print the value alone, as JSON' } },
  examples: [
    ['pillar get motd --root', 'by name and target'],
    ['pillar get 0198f2d4-1c57-7b1e-9d6c-0a7c1f0f8a11', 'by pid'],
    ['pillar get motd --root --value-only', 'its value, for a program'],
  ],
  async run(session, { args, options }) {
    const api = session.api();
    const { value } = await api.call('GET', pathOf(await resolvePid(api, args.pillar, options)));
    if (!options['value-only']) return await show(session, value, pillarFields);
    const text = canonicalText(asObject(value).value ?? null);
    await session.out.line(session.out.isTerminal ? escapeLine(text) : text);
  },
});
