import { setTimeout as delay } from 'node:timers/promises';
import type { ValueObject } from '@colonnade/value';
import { EXIT } from '../../exit-codes.ts';
import type { Session } from '../../session.ts';
import { asObject, show, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { createProgress } from '../../terminal/progress.ts';
import { keyPath } from './path.ts';

const EVERY_MS = 1000;

export const keyRewrap = defineCommand({
  path: 'key rewrap',
  summary: 'bring all stored values under the version of a key that seals',
  details:
    'Only what wraps a value changes: no version, no event, no ETag, and no minion is refreshed. It goes on in the background, and by itself after a rotation. Exit code 8 when something is left that does not open.',
  args: { name: { help: 'key: pillars' } },
  options: {
    wait: { help: 'until it has ended, showing how far it is' },
    status: { help: 'only say how far it is' },
  },
  examples: [
    ['key rewrap pillars --wait', 'until nothing is left under older versions'],
    ['key rewrap pillars --status', 'how much is left'],
  ],
  async run(session, { args, options }) {
    const path = keyPath(args.name, 'rewrap');
    const method = options.status ? 'GET' : 'POST';
    let now = asObject((await session.api().call(method, path)).value);
    if (options.wait && !options.status) now = await waitForEnd(session, path, now);
    await show(session, now, fieldsOf);
    const isOver = now.state === 'idle';
    return options.wait && isOver && now.left !== 0n ? EXIT.differs : EXIT.ok;
  },
});

async function waitForEnd(session: Session, path: string, begun: ValueObject): Promise<ValueObject> {
  using progress = createProgress();
  let now = begun;
  while (now.state === 'running') {
    progress.say(`${textOf(asObject(now.run).rewrapped)} rewrapped, ${textOf(now.left)} left`);
    await delay(EVERY_MS, undefined, { signal: session.signal });
    now = asObject((await session.api().call('GET', path)).value);
  }
  return now;
}

function fieldsOf({ run, ...rest }: ValueObject): (readonly [string, string])[] {
  const all = { ...rest, ...asObject(run), kid: rest.kid ?? null };
  return Object.entries(all).map(([name, value]) => [name, textOf(value)] as const);
}
