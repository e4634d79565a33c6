import type { StoredDeadLetter } from '@colonnade/bus';
import { fromPlain } from '@colonnade/value';
import type { Session } from '../session.ts';
import { escapeLine } from '../terminal/escape.ts';

/**
 * Shows dead letters, oldest first: a line each for a person, and with --json all of them, the message in base64.
 * @param what how JSON calls whose a letter is, only whose to show, and what a line ends in
 */
export async function showDeadLetters(
  session: Session,
  stream: 'AUDIT_DEAD' | 'EVENTS_DEAD',
  what: { of: string; only: string | undefined; endOf: (one: StoredDeadLetter['letter']) => string },
): Promise<void> {
  await using inspector = await session.inspector();
  let found = 0;
  for await (const { letter, of, storedAt } of inspector.deadLetters(stream)) {
    if (what.only !== undefined && of !== what.only) continue;
    found += 1;
    if (session.json) await session.out.json(fromPlain({ time: storedAt, [what.of]: of, ...letter }));
    else {
      const words = [storedAt, of, letter.reason, letter.detail || '-', what.endOf(letter)];
      await session.out.line(escapeLine(words.join('  ')));
    }
  }
  if (found === 0) session.out.note('there are no dead letters');
}
