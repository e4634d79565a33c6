import { readFile } from 'node:fs/promises';
import { verifyLog } from '@colonnade/audit-log';
import { AUDIT_STREAM } from '@colonnade/contracts';
import type { NatsConnection } from '@nats-io/transport-node';
import { waitFor } from '../../support/wait-for.ts';
import { type History, violate } from '../history.ts';
import { readAnchors, readStreamInfo } from './streams.ts';

const DRAIN_LIMIT_MS = 60_000;

/**
 * What the stream acknowledged stands in the file exactly once: each of its sequences has its place in the chain, the
 * chain fits file and anchors, and every request whose answer promised it is on record, once.
 * @returns how many lines there are
 */
export async function checkAuditLog(
  history: History,
  witness: NatsConnection,
  logPath: string,
): Promise<number> {
  const drained = async () => (await readStreamInfo(witness, AUDIT_STREAM)).state.messages === 0;
  await waitFor('AUDIT to be drained', drained, { limitMs: DRAIN_LIMIT_MS }).catch((error: Error) =>
    violate(history, 'audit log', error.message),
  );
  const { last_seq } = (await readStreamInfo(witness, AUDIT_STREAM)).state;
  const { fault } = await verifyLog(logPath, await readAnchors(witness));
  if (fault !== undefined) violate(history, 'audit log', JSON.stringify(fault));
  await checkJournal(history, `${logPath}.chain`, last_seq);
  return await checkRecords(history, logPath);
}

/** Every sequence of the stream once, without a hole. */
export async function checkJournal(history: History, file: string, lastSeq: number): Promise<void> {
  const [, ...lines] = (await readFile(file, 'utf8')).trimEnd().split('\n');
  let seq = 0;
  for (const line of lines) {
    const [kind, at] = line.split(' ');
    // One that is followed by more of the same message, or a record that only opens a file.
    if (kind === 'p' || Number(at) === 0) continue;
    if (Number(at) !== seq + 1) violate(history, 'audit log', `sequence ${at} after ${seq}`);
    seq = Number(at);
  }
  if (seq !== lastSeq) violate(history, 'audit log', `it ends at ${seq}, the stream at ${lastSeq}`);
}

/** A record waits for its acknowledgement so long, and is stored again so long after NATS is back, milliseconds. */
const AROUND_MS = 10_000;

type Line = { auditID: string; stage: string; requestURI: string; stageTimestamp: string };

/** @returns how many lines the log has */
export async function checkRecords(history: History, logPath: string): Promise<number> {
  const lines = (await readFile(logPath, 'utf8')).trimEnd().split('\n');
  const times = new Map<string, number[]>();
  for (const line of lines) {
    const { auditID, stage, requestURI, stageTimestamp } = JSON.parse(line) as Line;
    // What the KMS records of a request bears the id of that request.
    const record = `${auditID} ${stage} ${requestURI}`;
    times.set(record, [...(times.get(record) ?? []), Date.parse(stageTimestamp)]);
  }
  for (const [record, at] of times) {
    if (at.length > 1 && !wasForgotten(history, at))
      violate(history, 'record twice', `${record}: ${at.length} times`);
  }
  const known = new Set([...times.keys()].map((record) => record.split(' ').slice(0, 2).join(' ')));
  for (const { auditId, stages: promised, what } of history.recorded) {
    for (const stage of promised) {
      if (!known.has(`${auditId} ${stage}`))
        violate(history, 'lost record', `${stage} of ${what}, ${auditId}`);
    }
  }
  return lines.length;
}

/** A NATS that starts knows only the ids of the messages it still has, and AUDIT lets go of those that are in the file. */
function wasForgotten({ natsEndedAtMs }: History, at: readonly number[]): boolean {
  const [from, to] = [Math.min(...at) - AROUND_MS, Math.max(...at) + AROUND_MS];
  return natsEndedAtMs.some((ms) => ms >= from && ms <= to);
}
