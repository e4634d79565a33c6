import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { COMMANDS, renderReadme } from '../src/index.ts';
import { candidates } from '../src/table/completion.ts';
import { GLOBAL_OPTIONS, GROUPS, parse } from '../src/table/program.ts';
import { BULK_STEPS } from './steps/bulk.ts';
import { ESTATE_STEPS } from './steps/estate.ts';
import { HISTORY_STEPS } from './steps/history.ts';
import { HOOK_STEPS } from './steps/hooks.ts';
import { OPERATE_STEPS } from './steps/operate.ts';
import { PILLAR_STEPS } from './steps/pillars.ts';
import { TASK_STEPS } from './steps/tasks.ts';
import { TLS_STEPS } from './steps/tls.ts';

const names = COMMANDS.map(({ path }) => path.join(' '));

/** Words of a line as a shell splits them: quotes are all the examples use. */
function split(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/gu)].map(([, a, b, c]) => a ?? b ?? c ?? '');
}

describe('the table of commands', () => {
  test('the README shows it as it is (node scripts/write-cli-readme.ts)', () => {
    const text = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
    assert.equal(renderReadme(text, COMMANDS), text);
  });

  test('every command is run in a terminal and in a pipe', () => {
    const run = new Set(
      [
        ...ESTATE_STEPS,
        ...PILLAR_STEPS,
        ...OPERATE_STEPS,
        ...BULK_STEPS,
        ...TASK_STEPS,
        ...HISTORY_STEPS,
        ...HOOK_STEPS,
        ...TLS_STEPS,
      ].map(({ command }) => command),
    );
    assert.deepEqual([...run].sort(), names.toSorted());
  });

  test('every group says what it is about', () => {
    const groups = new Set(
      COMMANDS.flatMap(({ path }) => path.slice(0, -1).map((_, i) => path.slice(0, i + 1).join(' '))),
    );
    assert.deepEqual([...groups].sort(), Object.keys(GROUPS).sort());
  });

  for (const command of COMMANDS) {
    test(`${command.path.join(' ')} has examples, and they are read as what they say`, async () => {
      assert.ok(command.examples.length > 0);
      for (const [line] of command.examples) {
        const own = line.replace(/^(?:.*?[ (])?colonnade /u, '').replace(/ [|<>)].*$|\)$/u, '');
        const parsed = await parse(COMMANDS, '0', split(own));
        assert.deepEqual(parsed?.command.path, command.path, line);
      }
    });
  }

  test('no option takes a secret', () => {
    for (const command of COMMANDS) {
      for (const [name, spec] of Object.entries(command.options)) {
        const secret =
          /token|password|secret|key/u.test(name) &&
          'value' in spec &&
          // Of a file, or of names.
          spec.value !== 'FILE' &&
          spec.value !== 'GLOB' &&
          spec.choices === undefined;
        assert.ok(!secret || name === 'token-lifetime', `${command.path.join(' ')} --${name}`);
      }
    }
  });

  test('completion offers commands, options, choices and nothing where a file may stand', () => {
    const words = (...typed: string[]) => candidates(COMMANDS, typed, {}).map(({ word }) => word);
    assert.ok(words('').includes('pillar'));
    assert.deepEqual(words('pil'), ['pillar']);
    assert.ok(words('pillar', '').includes('reveal'));
    assert.deepEqual(words('pillar', 'get', '--val'), ['--value-only']);
    assert.deepEqual(words('pillar', 'set', 'x', '--as', ''), ['json', 'yaml', 'text']);
    assert.deepEqual(words('pillar', 'set', 'x', '--value-file', ''), []);
    for (const name of Object.keys(GLOBAL_OPTIONS)) assert.ok(words('status', '--').includes(`--${name}`));
  });
});
