/** What is remembered of a Secret that others change too. Times in milliseconds since 1970. */
export type Contest = {
  /** When it was put back, the last few times. */
  fights: readonly number[];
  /** Until then it is left alone. */
  backOffUntilMs: number;
  /** How often that has been so; the pauses grow. */
  rounds: number;
};

export const NO_CONTEST: Contest = { fights: [], backOffUntilMs: 0, rounds: 0 };

const WINDOW_MS = 10 * 60_000;
const FIGHTS = 3;
const MAX_BACK_OFF_MS = 4 * 60 * 60_000;
/** After so long without a fight all is forgotten. */
const CALM_MS = 24 * 60 * 60_000;

/** Whether the target is left to the other side for now. */
export function isContested(contest: Contest, nowMs: number): boolean {
  return nowMs < contest.backOffUntilMs;
}

/** Notes that a target was changed by someone else and put back; three times in ten minutes is a contest. */
export function noteFight(contest: Contest, nowMs: number): Contest {
  const last = contest.fights.at(-1) ?? 0;
  const rounds = nowMs - Math.max(last, contest.backOffUntilMs) > CALM_MS ? 0 : contest.rounds;
  const fights = [...contest.fights.filter((at) => nowMs - at < WINDOW_MS), nowMs];
  if (fights.length < FIGHTS) return { fights, backOffUntilMs: 0, rounds };
  const pauseMs = Math.min(WINDOW_MS * 2 ** rounds, MAX_BACK_OFF_MS);
  return { fights: [], backOffUntilMs: nowMs + pauseMs, rounds: rounds + 1 };
}
