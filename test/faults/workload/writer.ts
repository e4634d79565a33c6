import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Value } from '@colonnade/value';
import { fromPlain } from '@colonnade/value';
import type { Random } from '../../support/random.ts';
import { ABSENT, type History, type Operation, type ValueId, violate } from '../history.ts';
import { MEMBERSHIP, REGISTERS, type Register, ROAM, ROAMER, readValue, valueNamed } from './estate.ts';
import type { Send, Sent } from './http.ts';

export type WriterOptions = {
  client: number;
  random: Random;
  send: Send;
  history: History;
  canary: string;
  /** The pid of each fixed register. */
  fixed: ReadonlyMap<string, string>;
  stop: AbortSignal;
};

/** What is at a place now. */
type Found = { pid: string; etag: string; id: ValueId };
type Ok = Extract<Sent, { outcome: 'ok' }>;

const PAUSE_MS = 15;
const RETRIES = 3;

/** An operator who never stops: reads, creates, updates, deletes, reveals and moves a minion, in the order of a seed. */
export async function runWriter(options: WriterOptions): Promise<void> {
  const { random, stop } = options;
  const act = createActs(options);
  while (!stop.aborted) {
    if (random.chance(1 / 8)) await act.move();
    else await act.touch(random.pick(REGISTERS));
    await delay(1 + random.below(PAUSE_MS), undefined, { signal: stop }).catch(() => {});
  }
}

function createActs({ client, random, send, history, canary, fixed }: WriterOptions) {
  let written = 0;
  const newId = (): ValueId => `w${client}-${++written}`;
  const canaryIn = (register: Register) => (register.isSecret ? canary : undefined);

  const note = (
    key: string,
    sent: Sent,
    change: Pick<Operation, 'kind' | 'expect' | 'value'>,
    pid?: string,
  ) => {
    const tick = sent.outcome === 'ok' ? tickOf(sent) : undefined;
    history.operations.push({
      ...{ client, key, outcome: sent.outcome, call: sent.call, return: sent.return, auditId: sent.auditId },
      ...change,
      ...(pid === undefined ? {} : { pid }),
      ...(tick === undefined ? {} : { tick }),
    });
    if (sent.outcome !== 'ok' || change.kind === 'read') return;
    // The end of a write is tried again if it cannot be stored; a kill may lose it.
    history.recorded.push({ auditId: sent.auditId, stages: ['RequestReceived'], what: `a write of ${key}` });
  };

  const find = async (register: Register): Promise<Found | 'absent' | undefined> => {
    const pid = fixed.get(register.key);
    const { tgt_type, ...rest } = register.target;
    const query = fromPlain({ ...(tgt_type === 'minion' ? rest : { tgt_type }), name: register.name });
    const sent = await (pid ? send('GET', `/pillars/${pid}`) : send('POST', '/pillars/list', query));
    if (sent.outcome !== 'ok') return undefined;
    const found = pid ? sent.answer.value : (sent.answer.value as { items: Value[] }).items[0];
    const read = (value: ValueId) => note(register.key, sent, { kind: 'read', expect: ABSENT, value });
    if (found === undefined) {
      read(ABSENT);
      return 'absent';
    }
    const view = found as { pid: string; etag: string; value: Value };
    history.keyOf.set(view.pid, register.key);
    if (register.isSecret)
      return { pid: view.pid, etag: view.etag, id: history.secretOf.get(view.pid) ?? ABSENT };
    const id = readValue(view.value, undefined);
    if (id === undefined) {
      violate(history, 'torn value', `a read of ${register.key}`);
      return undefined;
    }
    read(id);
    return { pid: view.pid, etag: view.etag, id };
  };

  const create = async (register: Register): Promise<void> => {
    const id = newId();
    const { target, name, isSecret } = register;
    const body = { ...target, name, value: valueNamed(id, canaryIn(register)), is_secret: isSecret };
    const headers: Record<string, string> = random.chance(0.5) ? { 'idempotency-key': randomUUID() } : {};
    let sent = await send('POST', '/pillars', body, headers);
    const { call } = sent;
    // The same key again gives the answer of the first time, whether that arrived or not.
    for (let i = 0; i < RETRIES && sent.outcome === 'unknown' && headers['idempotency-key']; i++) {
      await delay(50);
      sent = await send('POST', '/pillars', body, headers);
    }
    const pid = sent.outcome === 'ok' ? (sent.answer.value as { pid: string }).pid : undefined;
    if (pid !== undefined) {
      history.keyOf.set(pid, register.key);
      if (isSecret) history.secretOf.set(pid, id);
    }
    note(register.key, { ...sent, call }, { kind: 'cas', expect: ABSENT, value: id }, pid);
  };

  const update = async (register: Register, found: Found): Promise<void> => {
    const id = newId();
    const body = { value: valueNamed(id, undefined) };
    const sent = await send('PUT', `/pillars/${found.pid}`, body, { 'if-match': found.etag });
    note(register.key, sent, { kind: 'cas', expect: found.id, value: id }, found.pid);
  };

  const remove = async (register: Register, found: Found): Promise<void> => {
    const sent = await send('DELETE', `/pillars/${found.pid}`, undefined, { 'if-match': found.etag });
    note(register.key, sent, { kind: 'cas', expect: found.id, value: ABSENT }, found.pid);
  };

  /** Shows a secret's value, and so says what is there. */
  const reveal = async (register: Register, found: Found): Promise<Found | undefined> => {
    const sent = await send('POST', `/pillars/${found.pid}/reveal`);
    if (sent.outcome !== 'ok') return undefined;
    history.recorded.push({
      auditId: sent.auditId,
      stages: ['RequestReceived', 'ResponseComplete'],
      what: `a reveal of ${register.key}`,
    });
    const id = readValue((sent.answer.value as { value: Value }).value, canary);
    if (id === undefined) {
      violate(history, 'torn value', `a reveal of ${register.key}`);
      return undefined;
    }
    history.secretOf.set(found.pid, id);
    note(register.key, sent, { kind: 'read', expect: ABSENT, value: id }, found.pid);
    return { ...found, id };
  };

  return {
    async touch(register: Register): Promise<void> {
      const now = await find(register);
      if (now === undefined) return;
      if (now === 'absent') return create(register);
      if (register.isSecret) {
        const known = await reveal(register, now);
        if (known !== undefined && random.chance(0.6)) await remove(register, known);
      } else if (!register.fixed && random.chance(0.25)) await remove(register, now);
      else if (random.chance(0.8)) await update(register, now);
    },
    /** Puts the roaming minion into another collection. */
    async move(): Promise<void> {
      const [master, minion] = ROAMER.split('/');
      const where = `/masters/${master}/minions/${minion}`;
      const sent = await send('GET', where);
      if (sent.outcome !== 'ok') return;
      const now = sent.answer.value as { collections: string[]; etag: string };
      note(MEMBERSHIP, sent, { kind: 'read', expect: ABSENT, value: now.collections[0] ?? ABSENT });
      const to = random.pick(ROAM);
      const moved = await send('PUT', where, fromPlain({ collections: [to] }), { 'if-match': now.etag });
      note(MEMBERSHIP, moved, { kind: 'set', expect: ABSENT, value: to });
    },
  };
}

/** Answers name the clock of what they show; a delete shows nothing. */
function tickOf(sent: Ok): number | undefined {
  const { clock } = (sent.answer.value ?? {}) as { clock?: bigint };
  return clock === undefined ? undefined : Number(clock);
}
