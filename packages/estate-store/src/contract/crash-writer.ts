import type { EstateStore } from '../port.ts';
import * as h from './harness.ts';

/** The writer's lanes: concurrent loops, each with pillars of its own, so that batches share commits. */
export const LANES = [0, 1, 2] as const;

export const leftOf = (lane: number) => ({ pid: `left${lane}`, pillarenv: `left${lane}` });
export const rightOf = (lane: number) => ({ pid: `right${lane}`, pillarenv: `right${lane}` });

/** What a lane creates in its step i. */
export const stepPid = (lane: number, i: number) => `step-${lane}-${i}`;
export const stepEnv = (lane: number) => `steps${lane}`;

/** The pillars the writer counts with, made before it starts. */
export async function prepareLanes(store: EstateStore): Promise<void> {
  const mutations = LANES.flatMap((lane) => {
    const [left, right] = [leftOf(lane), rightOf(lane)];
    return [
      h.createPillar(left.pid, { ...left, value: 0n }),
      h.createPillar(right.pid, { ...right, value: 0n }),
    ];
  });
  await store.write(h.batch(mutations, [h.event({ lane: -1, i: 0 })]));
}

/**
 * The body of the process that is killed: each step of a lane changes two scopes, creates a pillar and leaves an
 * event, all in one batch. After the acknowledgement it prints `lane step tick`.
 */
export async function runContractWriter(store: EstateStore): Promise<never> {
  await Promise.all(LANES.map((lane) => runLane(store, lane)));
  throw new Error('lanes never end');
}

async function runLane(store: EstateStore, lane: number): Promise<never> {
  const left = await store.getPillar(leftOf(lane).pid);
  for (let i = Number(left?.value) + 1; ; i++) {
    const step = h.createPillar(stepPid(lane, i), { pillarenv: stepEnv(lane), value: BigInt(i) });
    const mutations = [
      h.updatePillar(leftOf(lane).pid, BigInt(i)),
      step,
      h.updatePillar(rightOf(lane).pid, BigInt(i)),
    ];
    const { clock } = await store.write(h.batch(mutations, [h.event({ lane, i })]));
    process.stdout.write(`${lane} ${i} ${clock.tick}\n`);
  }
}
