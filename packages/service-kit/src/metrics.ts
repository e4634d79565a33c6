import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** The metrics of one service. Names get the prefix `colonnade_`; labels must stay low in cardinality. */
export type Metrics = {
  counter<L extends string>(name: string, help: string, labels: readonly L[]): Counter<L>;
  gauge<L extends string>(name: string, help: string, labels: readonly L[]): Gauge<L>;
  /** Seconds. */
  histogram<L extends string>(
    name: string,
    help: string,
    labels: readonly L[],
    bucketsSeconds?: readonly number[],
  ): Histogram<L>;
  render(): Promise<string>;
  readonly contentType: string;
};

const BUCKETS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function createMetrics(service: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const named = (name: string) => `colonnade_${name}`;
  return {
    counter: (name, help, labels) =>
      new Counter({ name: named(name), help, labelNames: [...labels], registers }),
    gauge: (name, help, labels) => new Gauge({ name: named(name), help, labelNames: [...labels], registers }),
    histogram: (name, help, labels, buckets = BUCKETS_SECONDS) =>
      new Histogram({ name: named(name), help, labelNames: [...labels], buckets: [...buckets], registers }),
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
