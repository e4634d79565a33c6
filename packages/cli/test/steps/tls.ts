import type { Step } from '../support.ts';

/** What an operator asks of tls-rotator; the rotator of the test has one IngressTLS that works, and one that is paused. */
export const TLS_STEPS: readonly Step[] = [
  {
    command: 'tls status',
    args: () => [],
    shows: /NAME +READY[\s\S]*common +True +Rotated[\s\S]*held +False +Paused/,
    reads: true,
    code: 8,
  },
  {
    command: 'tls status',
    args: () => ['common'],
    shows: /source +ingress\/ingress-tls[\s\S]*Ready +True since [\s\S]*secrets +1 unchanged/,
    reads: true,
  },
  {
    command: 'tls plan',
    args: () => ['common'],
    shows: /nothing would be changed/,
    reads: true,
  },
  {
    command: 'tls plan',
    args: () => ['held'],
    shows: /1 +secret +bare +create +there is none[\s\S]*2 +secret +other +update[\s\S]*in the way: Paused/,
    reads: true,
    code: 8,
  },
];
