export type CheckResult = { name: string; ok: boolean; reason?: string };
export type Readiness = { ok: boolean; checks: readonly CheckResult[] };

/**
 * Readiness of one service. Liveness asks no neighbour: a process that can answer is alive, and restarting it does not
 * bring back a store or a bus.
 */
export type Health = {
  /**
   * A check throws, or rejects, with a reason that is safe to show. It asks the thing itself, not what was believed of it last.
   * One that still runs is not begun again: whoever asks meanwhile shares its result.
   */
  addCheck(name: string, check: () => Promise<void> | void): void;
  ready(): Promise<Readiness>;
  /** From now on not ready: the process is leaving. */
  setDraining(): void;
};

const CHECK_TIMEOUT_MS = 2000;

export function createHealth(): Health {
  const checks = new Map<string, () => Promise<void>>();
  let draining = false;
  return {
    addCheck: (name, check) => void checks.set(name, shared(check)),
    setDraining: () => {
      draining = true;
    },
    async ready() {
      const results = await Promise.all([...checks].map(([name, check]) => runCheck(name, check)));
      if (draining) results.push({ name: 'draining', ok: false, reason: 'the service is shutting down' });
      return { ok: results.every((r) => r.ok), checks: results };
    },
  };
}

function shared(check: () => Promise<void> | void): () => Promise<void> {
  let underWay: Promise<void> | undefined;
  return () => {
    underWay ??= Promise.resolve()
      .then(check)
      .finally(() => {
        underWay = undefined;
      });
    return underWay;
  };
}

async function runCheck(name: string, check: () => Promise<void>): Promise<CheckResult> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${CHECK_TIMEOUT_MS} ms`)), CHECK_TIMEOUT_MS);
  });
  try {
    await Promise.race([check(), late]);
    return { name, ok: true };
  } catch (thrown) {
    return { name, ok: false, reason: thrown instanceof Error ? thrown.message : 'failed' };
  } finally {
    clearTimeout(timer);
  }
}
