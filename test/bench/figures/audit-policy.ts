import { compilePolicy, loadPolicy } from '@colonnade/audit';
import type { Figure } from '../figure.ts';
import { loop, spreadOf } from '../measure.ts';

const RULES = 100;
const GOAL = 200_000;

/** A policy of 100 rules, none of which but the last is for the request. */
export const auditPolicy: Figure = {
  name: 'audit-policy',
  about: 'evaluations a second of an audit policy of 100 rules, on one core',
  async measure({ repeats, trialMs }) {
    const rules = Array.from({ length: RULES - 1 }, (_, i) => ({
      ...{ level: 'Request', userGroups: ['everybody'], verbs: ['get'] },
      resources: [{ group: 'colonnade', resources: ['pillars'], resourceNames: [`name-${i}`] }],
    }));
    const text = JSON.stringify({
      apiVersion: 'audit.k8s.io/v1',
      kind: 'Policy',
      rules: [...rules, { level: 'Metadata' }],
    });
    const { evaluate } = compilePolicy(loadPolicy(text, { strict: true }).policy);
    const request = {
      ...{
        user: { name: 'alice', groups: ['everybody'] },
        verb: 'get',
        isResource: true,
        path: '/pillars/1',
      },
      ...{ apiGroup: 'colonnade', resource: 'pillars', subresource: '', namespace: 'root', name: 'another' },
    };
    if (evaluate(request).level !== 'Metadata') throw new Error('another rule matched');
    const once = () => {
      for (let i = 0; i < 1000; i++) evaluate(request);
    };
    loop(trialMs / 4, once);
    const ours = spreadOf(Array.from({ length: repeats }, () => loop(trialMs, once, 1000)));
    const goal = { text: `≥ ${GOAL.toLocaleString('en')}/s`, met: ours.median >= GOAL };
    return [{ what: 'audit policy of 100 rules', unit: 'evaluations/s', better: 'higher', ours, goal }];
  },
};
