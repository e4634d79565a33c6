import { type Route, route } from '@colonnade/bus';
import { tlsPlan, tlsStatus } from '@colonnade/contracts';
import { findIngress, planPass } from './plan.ts';
import type { ReconcileDeps } from './reconcile.ts';
import { reportOf } from './report.ts';

export type RouteDeps = Pick<ReconcileDeps, 'client' | 'watches' | 'allowed' | 'sync' | 'roller'> & {
  leader: () => string | undefined;
};

/** What an operator may ask over the bus; every replica answers, and none changes anything for it. */
export function createRoutes(deps: RouteDeps): Route[] {
  const { watches, leader } = deps;
  return [
    route(tlsStatus, async ({ name }) => {
      const all = [...watches.ingresses.entries()].map(([, ingress]) => ingress);
      const found = name === undefined ? all : [findIngress(deps, name)];
      const items = found.map(reportOf).sort((a, b) => (a.name < b.name ? -1 : 1));
      return { leader: leader() ?? null, items };
    }),
    route(tlsPlan, async ({ name }) => planPass(findIngress(deps, name), deps)),
  ];
}
