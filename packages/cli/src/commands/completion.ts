import { usageError } from '../exit-codes.ts';
import { defineCommand } from '../table/command.ts';
import { SHELLS } from '../table/shells.ts';

export const completion = defineCommand({
  path: 'completion',
  summary: 'print the completion script of a shell',
  args: { shell: { help: 'bash, zsh or fish' } },
  examples: [
    ['source <(colonnade completion bash)', 'in ~/.bashrc'],
    ['colonnade completion zsh > ~/.zfunc/_colonnade', 'for zsh, where that folder is in fpath'],
    ['colonnade completion fish > ~/.config/fish/completions/colonnade.fish', 'for fish'],
  ],
  async run({ out, json }, { args }) {
    const script = Object.hasOwn(SHELLS, args.shell) ? SHELLS[args.shell] : undefined;
    if (script === undefined)
      throw usageError(`no completion for "${args.shell}": ${Object.keys(SHELLS).join(', ')}`);
    if (json) return await out.json({ shell: args.shell, script });
    await out.write(script);
  },
});
