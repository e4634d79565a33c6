import {
  applyFilter,
  type EventFilter,
  findEvents,
  type SequenceRange,
  type Skipped,
} from '@colonnade/audit-log';
import {
  createReloadingPoster,
  createThrottle,
  fitEvent,
  type Item,
  type SizeLimits,
  sendList,
} from '@colonnade/audit-webhook';
import { ColonnadeError } from '@colonnade/contracts';
import { fromPlain } from '@colonnade/value';
import { EXIT, usageError } from '../../exit-codes.ts';
import { readFilter } from '../../shared/audit-filter.ts';
import { LOG_OPTION, logPath, QUERY_OPTIONS, readQuery, skippedNote } from '../../shared/audit-query.ts';
import { countOf } from '../../shared/pages.ts';
import { defineCommand } from '../../table/command.ts';
import { createProgress } from '../../terminal/progress.ts';

/** As audit-sink's own defaults. */
const LIMITS = { maxEventBytes: 102_400, maxBatchEvents: 400, maxBatchBytes: 10 * 1024 * 1024 };
const BURST = 15;
const INITIAL_BACKOFF_MS = 1000;

type Replayed = Item & { auditID: string; time: string };

export const auditReplay = defineCommand({
  path: 'audit replay',
  summary: 'send records of the audit log to the webhook again',
  details:
    'For what the webhook missed, such as the range a gap record names: its colonnade/gap-from and colonnade/gap-to are --from-seq and --to-seq, which the journal beside the log maps to lines. In the order of the log, at least once; a record may come there a second time. What the policy of the webhook leaves out or takes off is left out and taken off here too. Gives up after --tries failures in a row, says which record came last, and can be repeated from there.',
  options: {
    ...LOG_OPTION,
    ...QUERY_OPTIONS,
    'from-seq': { value: 'N', help: 'from this sequence of the stream on, as a gap record names it' },
    'to-seq': { value: 'N', help: 'up to this one' },
    'webhook-config': {
      value: 'FILE',
      required: true,
      help: 'kubeconfig file of the webhook, as audit-sink has it',
    },
    policy: {
      value: 'FILE',
      help: 'audit policy of the webhook, as audit-sink has it (default: AUDIT_WEBHOOK_POLICY_FILE)',
    },
    qps: { value: 'N', help: 'requests a second (default: 10)' },
    tries: { value: 'N', help: 'failures in a row before it gives up (default: 5)' },
    truncate: { help: 'leave out the bodies of records over 100 KiB' },
    'dry-run': { help: 'only count' },
  },
  examples: [
    [
      'audit replay --log audit.log --webhook-config webhook.yaml --from-seq 1200 --to-seq 5295',
      'the range of a gap record',
    ],
    [
      'audit replay --log audit.log --webhook-config webhook.yaml --since 2026-01-31T12:00:00Z --until 2026-01-31T13:00:00Z',
      'one hour',
    ],
    ['audit replay --log audit.log --webhook-config webhook.yaml --since 7d --dry-run', 'how many they are'],
  ],
  async run({ out, env, json, signal }, { options }) {
    const tries = countOf('tries', options.tries ?? '5');
    const limits = { ...LIMITS, truncate: options.truncate };
    using poster = createReloadingPoster(options['webhook-config'], () => {});
    const giveUp = new AbortController();
    const stop = AbortSignal.any([signal, giveUp.signal]);
    using progress = createProgress();
    const result = {
      matching: 0,
      filtered: 0,
      sent: 0,
      refused: 0,
      too_large: 0,
      last: null as string | null,
    };
    const send = {
      post: poster.post,
      throttle: createThrottle(countOf('qps', options.qps ?? '10'), BURST),
      initialBackoffMs: INITIAL_BACKOFF_MS,
      onAnswer: () => {},
      onSuccess: () => {},
      onFailure: (error: ColonnadeError, attempt: number) => {
        out.note(`try ${attempt}: ${error.message}`);
        poster.reload();
        if (attempt >= tries) giveUp.abort();
      },
    };
    const filter = await readFilter(options.policy ?? (env.AUDIT_WEBHOOK_POLICY_FILE || undefined), out.note);
    let skipped = false;
    const onSkipped = (what: Skipped) => {
      skipped = true;
      out.note(skippedNote(what));
    };
    const chosen = { query: readQuery(options, Date.now()), range: readRange(options), filter, onSkipped };
    for await (const list of lists(logPath(options, env), chosen, limits, result)) {
      signal.throwIfAborted();
      if (options['dry-run']) continue;
      const sent = await sendList(list, send, stop).catch((thrown: unknown) => {
        signal.throwIfAborted();
        const reached = result.last === null ? 'none was sent' : `the last one there is ${result.last}`;
        const why = thrown instanceof Error ? thrown.message : String(thrown);
        throw new ColonnadeError('unavailable', `${why}; ${reached}: go on with --since its time`, {
          cause: thrown,
        });
      });
      result.refused += sent.refused.length;
      result.sent += list.length - sent.refused.length;
      const last = list.at(-1);
      result.last = last === undefined ? result.last : `${last.time} ${last.auditID}`;
      progress.say(`${result.sent} records sent`);
    }
    progress[Symbol.dispose]();
    if (json) await out.json(fromPlain(result));
    else
      await out.fields(Object.entries(result).map(([name, value]) => [name, String(value ?? '-')] as const));
    return result.refused + result.too_large === 0 && !skipped ? EXIT.ok : EXIT.differs;
  },
});

/** @throws ColonnadeError `misconfigured` for what is no sequence, or a range that is none */
function readRange(options: Record<'from-seq' | 'to-seq', string | undefined>): SequenceRange | undefined {
  const [from, to] = (['from-seq', 'to-seq'] as const).map((name) => {
    const text = options[name];
    if (text === undefined) return undefined;
    if (!/^\d{1,15}$/u.test(text)) throw usageError(`--${name}: "${text}" is no sequence`);
    return Number(text);
  });
  if (from === undefined && to === undefined) return undefined;
  const range = { from: from ?? 0, to: to ?? Number.MAX_SAFE_INTEGER };
  if (range.from > range.to) throw usageError('--from-seq is greater than --to-seq');
  return range;
}

type Chosen = {
  query: ReturnType<typeof readQuery>;
  range: SequenceRange | undefined;
  filter: EventFilter | undefined;
  onSkipped: (skipped: Skipped) => void;
};

/** Lists of one request each; what is filtered or over the limit is counted and left out. */
async function* lists(
  log: string,
  { query, range, filter, onSkipped }: Chosen,
  limits: SizeLimits,
  count: { matching: number; filtered: number; too_large: number },
): AsyncGenerator<Replayed[]> {
  let list: Replayed[] = [];
  let size = 0;
  for await (const { line, event } of findEvents(log, query, { range, onSkipped })) {
    count.matching += 1;
    const taken = applyFilter({ ok: true, event, text: line, bytes: Buffer.from(line) }, filter);
    if (taken === undefined) {
      count.filtered += 1;
      continue;
    }
    const bytes = fitEvent(taken.bytes, taken.event, limits);
    if (bytes === undefined) {
      count.too_large += 1;
      continue;
    }
    if (
      list.length >= limits.maxBatchEvents ||
      (size + bytes.length > limits.maxBatchBytes && list.length > 0)
    ) {
      yield list;
      [list, size] = [[], 0];
    }
    list.push({ bytes, auditID: event.auditID, time: String(event.stageTimestamp) });
    size += bytes.length;
  }
  if (list.length > 0) yield list;
}
