import type { Figure, Row } from '../figure.ts';
import { drive, spreadOf } from '../measure.ts';
import { askForPillar, fillBenchEstate, startBenchStack } from '../parts/bench-stack.ts';
import { fillPillars, openFilled } from '../parts/fill.ts';

/** The same merge in an estate that grows. */
export const size: Figure = {
  name: 'size',
  about: 'one merge while the estate grows from 10² to 10⁵ pillars (--large: 10⁶)',
  async measure({ repeats, trialMs, large, report }) {
    await using bench = await startBenchStack('sqlite');
    const bridge = bench.connect(await bench.addMaster('m1'));
    await fillBenchEstate(bench.api, 'm1');
    await using store = await openFilled(bench.place);
    const ask = () => askForPillar(bridge);
    const rows: Row[] = [];
    let filled = 0;
    for (const pillars of [100, 1000, 10_000, 100_000, ...(large ? [1_000_000] : [])]) {
      await fillPillars(store, 'm1', filled, pillars);
      filled = pillars;
      report(`${pillars} pillars`);
      await drive({ concurrency: 1, ms: trialMs }, ask);
      const times: number[] = [];
      for (let i = 0; i < repeats; i++) times.push((await drive({ concurrency: 1, ms: trialMs }, ask)).p50Ms);
      const [first] = rows;
      const row: Row = {
        ...{ what: `merge among ${pillars.toLocaleString('en')} pillars, p50`, unit: 'ms', better: 'lower' },
        ours: spreadOf(times),
      };
      if (first === undefined) rows.push(row);
      else {
        const growth = row.ours.median / first.ours.median;
        const goal = { text: '≤ 1.2 × that among 100', met: growth <= 1.2 };
        rows.push({ ...row, floor: first.ours, floorIs: 'among 100 pillars', goal });
      }
    }
    return rows;
  },
};
