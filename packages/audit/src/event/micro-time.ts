/** Now as RFC 3339 with microseconds, the form of Kubernetes' MicroTime. */
export function microTime(epochMs: number = performance.timeOrigin + performance.now()): string {
  const micros = Math.floor((epochMs % 1) * 1000);
  return new Date(epochMs).toISOString().replace('Z', `${String(micros).padStart(3, '0')}Z`);
}
