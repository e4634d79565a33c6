import { startCall, type TlsStep, tlsPlan } from '@colonnade/contracts';
import { fromPlain } from '@colonnade/value';
import { EXIT } from '../../exit-codes.ts';
import { defineCommand } from '../../table/command.ts';

/** A node that does not answer is given up by the rotator after 15 s. */
const BUDGET_MS = 45_000;

export const tlsPlanCommand = defineCommand({
  path: 'tls plan',
  summary: 'show what tls-rotator would do for an IngressTLS now, and in which order; nothing is done',
  details:
    'As the NATS user "operator". The rotator reads the source and looks at every node; it writes nothing. Of one that is paused it shows what would be done without that. Exit code 8 when something stands in the way.',
  args: { name: { help: 'name of an IngressTLS' } },
  examples: [
    ['tls plan common-tls', 'before `paused` is taken away'],
    ['colonnade tls plan common-tls --json | jq .steps', 'for a program'],
  ],
  async run(session, { args: { name } }) {
    await using inspector = await session.inspector();
    const plan = await inspector.ask(tlsPlan, { name }, startCall(BUDGET_MS));
    const { steps, blocked, failures } = plan;
    const { out } = session;
    if (session.json) await out.json(fromPlain(plan));
    else {
      const table = out.table<TlsStep & { order: number }>([
        { title: 'STEP', of: ({ order }) => String(order), align: 'right' },
        { title: 'WHAT', of: ({ kind }) => kind },
        { title: 'WHERE', of: ({ name: where }) => where },
        { title: 'DOES', of: ({ does }) => does },
        { title: 'WHY', of: ({ why }) => why },
      ]);
      if (steps.length > 0) await table.add(steps.map((step, i) => ({ ...step, order: i + 1 })));
      else await out.line('nothing would be changed');
      if (plan.steps_left_off > 0) out.note(`${plan.steps_left_off} more steps`);
      for (const { namespace, reason } of failures) out.note(`${namespace} would fail: ${reason}`);
      if (blocked !== null) out.note(`in the way: ${blocked.reason}: ${blocked.message}`);
    }
    return blocked === null && failures.length === 0 ? EXIT.ok : EXIT.differs;
  },
});
